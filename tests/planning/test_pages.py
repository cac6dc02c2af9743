"""Recommendations, comparisons and guarantees of batches as pages."""

import html.parser
import sys

import pytest

from sunzi.plan import make_plan
from sunzi.planning import batch_curves, compare, plan_for_batch, recommend, setting_grid
from sunzi.planning.pages import batch_page, central_page, comparison_page, recommendation_page


def texts(page: str) -> str:
    """The text of a page whose elements are all closed."""
    found, depth = [], []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "br"):
                depth.append(tag)

        def handle_endtag(self, tag):
            assert depth.pop() == tag

        def handle_startendtag(self, tag, attributes):
            pass

        def handle_data(self, data):
            found.append(data)

    Reader().feed(page)
    assert depth == []
    return " ".join(found)


def test_a_recommendation():
    found = recommend(["<b>", "b", "c"], 1, 1000, protocols=["grr", "ss"])
    page = recommendation_page(found)
    text = texts(page)
    assert f"3 values, 1,000 users, epsilon 1: {found.protocol}" in text
    assert found.reason in text
    assert found.plan.fingerprint in text
    assert "efficiency: the least mean squared error" in text
    assert "<b>" not in page
    assert "http" not in page.replace("http-equiv", "")


def records(sizes=(10,)):
    return list(compare(setting_grid(sizes, [1, 2], [100]), ["grr", "oue"]))


def test_a_comparison_has_a_picture_and_a_table():
    pytest.importorskip("matplotlib")
    page = comparison_page(records(), "epsilon")
    assert page.count("<svg") == 1
    text = texts(page)
    assert "2 protocols, 10 values, 100 users" in text
    assert "oue" in text
    assert "<svg" not in comparison_page(records((10, 20)), None), "there is no picture of two parameters"


def test_what_cannot_be_drawn_is_said(monkeypatch):
    unknown = list(compare(setting_grid([(1 << 24) + 1], [1], [100]), ["oue"]))
    assert "nothing to draw" in texts(comparison_page(unknown, "epsilon"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "sunzi.planning.plots", raising=False)
    assert "pip install 'sunzi[plot]'" in texts(comparison_page(records(), "epsilon"))


def test_a_batch_with_its_conditions_and_picture(monkeypatch):
    monkeypatch.setattr("sunzi.planning.central_curves._STEPS", 1)
    monkeypatch.setattr("sunzi.planning.central_curves._EPSILONS", ())
    plan = make_plan("grr", 16, 2)
    guarantee = plan.batch_guarantee(100_000, 1e-8)
    page = batch_page(batch_curves(plan, guarantee), guarantee.facts())
    text = texts(page)
    assert "A batch of 100,000 reports, grr, 16 values" in text
    assert guarantee.in_words() in text
    for name, value in guarantee.facts():
        assert name in text
        assert value in text
    assert "<svg" in page or "pip install" in text


def test_a_plan_for_a_central_guarantee():
    found = plan_for_batch(100, 10_000, 1, 1e-8)
    text = texts(central_page(found))
    assert "100 values, 10,000 users, central epsilon 1: grr" in text
    for sentence in (found.reason, found.warning, found.guarantee.in_words(), found.plan.fingerprint):
        assert sentence in text
    assert "Gaussian noise" in text
