"""Figures in words: counts, sizes, percentages, and what a plan guarantees."""

from fractions import Fraction

import sunzi
from sunzi.formatting import (
    attacker_success,
    bits_in_words,
    byte_size,
    counted,
    decimals_for,
    display_width,
    percent,
    percent_of_three_digits,
    printable,
    privacy_bound,
    shortened,
    with_prefix,
)


def test_percentages_and_prefixes():
    assert [percent_of_three_digits(value) for value in (0.5, 0.0123456, 1e-5, 1e-7, 1, 12.3)] == [
        "50.0 %",
        "1.23 %",
        "0.00100 %",
        "1e-05 %",
        "100 %",
        "1,230 %",
    ]
    assert [with_prefix(value) for value in (7, 999.4, 1000, 34_567, 2.5e6, 3e13)] == [
        "7 ",
        "999 ",
        "1.0 k",
        "35 k",
        "2.5 M",
        "30 T",
    ]


def test_counts_sizes_and_percentages():
    assert [bits_in_words(bits) for bits in (1.0, 4.75, 12)] == ["1 bit", "4.75 bits", "12 bits"]
    assert counted(1, "report") == "1 report"
    assert counted(2_000, "report") == "2,000 reports"
    assert byte_size(357) == "357 bytes"
    assert byte_size(75_104) == "75,104 bytes (75.1 kB)"
    assert byte_size(3 * 10**12) == "3,000,000,000,000 bytes (3.0 TB)"
    assert [percent(share) for share in (0, 0.3, 0.00123, -0.002, 1)] == [
        "0.00 %",
        "30 %",
        "0.12 %",
        "-0.20 %",
        "100 %",
    ]
    assert decimals_for([0.0012, 0.0015]) == 2
    assert decimals_for([]) == 2


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


def test_long_and_unprintable_texts():
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdef", 4) == "ab…f"
    assert shortened("https://example.org/a/long/path?version=12.3", 20) == "https://ex…sion=12.3"
    assert display_width(shortened("日本語日本語", 5)) <= 5
    assert printable("a\x1b[2Jb\u202e") == r"a\x1b[2Jb\u202e"
