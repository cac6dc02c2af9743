"""Tables for notebooks: escaped, and styled without touching the rest of the page."""

import re

import sunzi
from sunzi.display.markup import STYLE, facts_table, for_notebook, plain_table
from sunzi.planning import recommend

NASTY = '<script>alert("x")</script>'


def test_texts_are_escaped():
    for markup in (facts_table([(NASTY, NASTY)]), plain_table([NASTY], [[NASTY]], chosen=[0])):
        assert "<script" not in markup
        assert markup.count("&lt;script&gt;") == 2


def test_the_style_reaches_nothing_outside():
    for rule in re.findall(r"^(\S[^{]*)\{", STYLE, re.MULTILINE):
        assert rule.strip() == ".sunzi"
    assert for_notebook("").startswith('<div class="sunzi">')


def test_one_row_is_emphasised():
    assert plain_table(["a"], [["1"], ["2"]], chosen=[1]).count('<tr class="chosen"><td>2</td>') == 1
    assert "chosen" not in plain_table(["a"], [["1"], ["2"]])


def test_plans_tallies_and_recommendations_show_their_figures():
    plan = sunzi.make_plan("mss", ["a", NASTY, *map(str, range(98))], epsilon=2)
    tally = plan.simulate(["a"] * 1234, seed=1)
    shown = plan._repr_html_()
    assert "<script" not in shown
    assert all(text in shown for text in (plan.fingerprint, "mss", "epsilon = 2", "100: labels a, "))
    assert "<td>1,234</td>" in tally._repr_html_()
    advice = recommend(16, 1, users=1000, protocols=["grr", "oue"])
    shown = advice._repr_html_()
    assert shown.count('class="chosen"') == 1
    assert '<tr class="chosen"><td>oue</td>' in shown
    assert advice.reason.split()[0] in shown
