"""Plans of tables: which views are planned, and what their estimates and attackers know."""

import pytest

import sunzi
from sunzi.errors import EstimateError

SHARES = 1 << 32


@pytest.fixture(scope="module")
def tables():
    attributes = {"a": list("xyz"), "b": list("0123"), "c": list("uv")}
    return sunzi.make_tables(attributes, [("a", "b"), ("b", "c")], epsilon=2)


def test_tables_that_nobody_has_answered_yet_are_told_from_those_that_are_not_planned():
    plan = sunzi.make_tables({name: ["0", "1"] for name in "abc"}, [("a", "b"), ("a", "c"), ("b", "c")], epsilon=1)
    tally = plan.simulate([{"a": "0", "b": "0", "c": "1"}], seed=1)
    (answered,) = [place for place, reports in enumerate(tally.block_reports) if reports]
    known = {"abc"[number] for number in plan.protocol.tables[answered]}
    for table in ("ab", "ac", "bc"):
        if set(table) != known:
            with pytest.raises(EstimateError, match=r"no report covers \w yet: .* Wait for more reports"):
                plan.estimate(tally, table=tuple(table))
    full = plan.simulate([{"a": "0", "b": "0", "c": "1"}] * 300, seed=1)
    with pytest.raises(EstimateError, match=r"does not cover a × b × c; its tables are .* Choose one"):
        plan.estimate(full, table=tuple("abc"))


def test_tables_of_a_thin_tally_follow_from_the_views_that_have_reports(tables):
    one = tables.tally(tables.client(seed=3).reports([{"a": "x", "b": "0", "c": "u"}]))
    answered = tables.protocol.tables[one.block_reports.index(1)]
    names = [list(tables.domain.attributes)[number] for number in answered]
    assert tables.estimate(one, table=names).frequencies.sum() == pytest.approx(1)


def test_the_attacker_names_a_cell_and_guesses_the_rest(tables):
    assert 1 / 24 < tables.attackability < 0.5
    assert tables.protocol.words_per_report > 1
    assert tables.protocol.decoding_cost(1000).operations > 0


def test_ten_attributes_are_planned_with_all_pairs():
    names = [f"a{number}" for number in range(10)]
    pairs = [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]
    plan = sunzi.make_tables({name: list("0123") for name in names}, pairs, epsilon=1)
    assert len(plan.protocol.tables) >= len(pairs)
    assert sum(view.share for view in plan.protocol.views) == SHARES
