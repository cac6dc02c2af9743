"""Experiments of tests need no precision."""

import pytest

from reproduction import paper_formula


@pytest.fixture(autouse=True)
def few_random_signs(monkeypatch):
    monkeypatch.setattr(paper_formula, "_ENTRIES", 1024)
