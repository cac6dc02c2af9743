"""Numbers as text: parsed and formatted, and the figures of a plan."""

from fractions import Fraction

import pytest

import sunzi
from sunzi.cli import numbers
from sunzi.cli.numbers import AXES_HEADER, attacker_success, axes_cells, privacy_bound
from sunzi.errors import ParameterError
from sunzi.planning import evaluate


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


def test_percentages_and_prefixes():
    assert [numbers.percent_of_three_digits(value) for value in (0.5, 0.0123456, 1e-5, 1e-7, 1, 12.3)] == [
        "50.0 %",
        "1.23 %",
        "0.00100 %",
        "1e-05 %",
        "100 %",
        "1,230 %",
    ]
    assert [numbers.with_prefix(value) for value in (7, 999.4, 1000, 34_567, 2.5e6, 3e13)] == [
        "7 ",
        "999 ",
        "1.0 k",
        "35 k",
        "2.5 M",
        "30 T",
    ]


def test_counts_sizes_and_percentages():
    assert numbers.counted(1, "report") == "1 report"
    assert numbers.counted(2_000, "report") == "2,000 reports"
    assert numbers.byte_size(357) == "357 bytes"
    assert numbers.byte_size(75_104) == "75,104 bytes (75.1 kB)"
    assert numbers.byte_size(3 * 10**12) == "3,000,000,000,000 bytes (3.0 TB)"
    assert [numbers.percent(share) for share in (0, 0.3, 0.00123, -0.002, 1)] == [
        "0.00 %",
        "30 %",
        "0.12 %",
        "-0.20 %",
        "100 %",
    ]
    assert numbers.decimals_for([0.0012, 0.0015]) == 2
    assert numbers.decimals_for([]) == 2


def test_what_epsilon_guarantees():
    assert privacy_bound(Fraction(1)) == (
        "epsilon = 1: any report is at most 2.72 times as likely under one value as under any other"
    )
    assert "at most e^1000 times as likely" in privacy_bound(Fraction(1000))


def test_what_one_report_reveals():
    assert attacker_success(sunzi.make_plan("grr", 12, 1).attackability, 12) == (
        "someone who sees a report guesses the value correctly 19.8 % of the time, compared with 8.33 % without it, "
        "if all values are equally likely"
    )
    assert "over 99.9 % of the time" in attacker_success(1 - 1e-9, 12)


def test_cells_of_a_table():
    undetected = axes_cells(evaluate(sunzi.make_plan("grr", 500, 1), 10))
    assert len(undetected) == len(AXES_HEADER)
    assert "none" in undetected
