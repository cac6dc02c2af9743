"""Protocols by name: all are found, and a name cannot be taken twice."""

import numpy as np
import pytest

import sunzi
from sunzi.errors import ParameterError
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import make_plan
from sunzi.protocols import registry
from sunzi.protocols.block_protocols import GeneralizedRandomizedResponse
from sunzi.protocols.registry import catalogue, find, register


def test_every_name_finds_its_class():
    assert sunzi.catalogue() == catalogue()
    assert len(set(catalogue())) == 8
    for name in catalogue():
        assert find(name).name == name


@pytest.mark.parametrize("name", catalogue())
def test_the_shortcut_of_clients_takes_the_same_words_to_the_same_reports(name):
    """Analyses use ``randomize``, clients ``randomize_reports``."""
    protocol, values = make_plan(name, 60, 1).protocol, np.arange(300) % 60
    expected = protocol.encode(protocol.randomize(values, ReproducibleSource(6)))
    found = protocol.randomize_reports(values, ReproducibleSource(6))
    assert np.array_equal(found.selectors, expected.selectors)
    assert found.in_order() == expected.in_order()


@pytest.mark.parametrize("name", [["grr"], None, 5, "GRR"])
def test_protocols(name):
    with pytest.raises(ParameterError, match="protocol must be one of"):
        make_plan(name, 10, 1)


def test_a_registered_protocol_can_be_planned(monkeypatch):
    monkeypatch.setattr(registry, "_PROTOCOLS", dict(registry._PROTOCOLS))

    @register
    class Mine(GeneralizedRandomizedResponse):
        name = "mine"

    assert catalogue()[-1] == "mine"
    plan = make_plan("mine", 5, 1)
    assert type(plan.protocol) is Mine
    assert plan != make_plan("grr", 5, 1)


def test_a_name_that_is_taken_is_refused():
    class Impostor(GeneralizedRandomizedResponse):
        name = "ss"

    with pytest.raises(ParameterError, match=r"a protocol named 'ss' exists already: .*SubsetSelection"):
        register(Impostor)
    assert find("ss") is not Impostor
