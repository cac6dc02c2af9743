"""Numbers that people type."""

import pytest

from sunzi.cli import numbers
from sunzi.client.errors import ParameterError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", [5]),
        ("1e3,1_000,2", [1000, 2]),
        ("1:2:1/4", [1, 1.25, 1.5, 1.75, 2]),
        ("0.5:5:2", [0.5, 2.5, 4.5]),
        ("100:100000:x10", [100, 1000, 10_000, 100_000]),
        ("1:1:1,7", [1, 7]),
    ],
)
def test_lists_and_ranges(text, expected):
    assert numbers.parse_numbers(text, "--epsilon") == expected


@pytest.mark.parametrize(
    "text", ["", "1:2", "1:2:3:4", "2:1:1", "1:2:0", "1:2:-1", "1:9:x1", "0:9:x2", "1:2:y", "1,,2"]
)
def test_broken_lists_and_ranges(text):
    with pytest.raises(ParameterError, match="--size"):
        numbers.parse_numbers(text, "--size")


def test_ranges_without_end_and_fractions_of_users():
    with pytest.raises(ParameterError, match="more than 1,000"):
        numbers.parse_numbers("0:1e9:1", "--users")
    with pytest.raises(ParameterError, match=r"whole numbers, got 1\.5 in '1:2:0\.5'"):
        numbers.parse_integers("1:2:0.5", "--users")
