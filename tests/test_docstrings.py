"""Docstrings of public names: examples run, and functions document every parameter."""

import doctest
import inspect
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from sunzi.plan import make_plan

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = runpy.run_path(str(ROOT / "scripts" / "make-api-docs"))["public_names"]()
OBJECTS = {
    f"{module}.{name}": getattr(import_module(module), name) for module, names in PUBLIC.items() for name in names
}
FUNCTIONS = {name: value for name, value in OBJECTS.items() if inspect.isfunction(value)}
EXECUTABLE = {name: value for name, value in OBJECTS.items() if inspect.isfunction(value) or inspect.isclass(value)}


@pytest.mark.parametrize("name", sorted(EXECUTABLE))
def test_examples_run(name, tmp_path, monkeypatch):
    """Every function and class shows an example; those of methods run as well."""
    monkeypatch.chdir(tmp_path)
    make_plan("grr", ["Firefox", "Chrome", "Safari"], 1).save("plan.json")  # which examples of the client load
    value = EXECUTABLE[name]
    found = doctest.DocTestFinder().find(value, name, globs=vars(inspect.getmodule(value)).copy())
    assert next(test.examples for test in found if test.name == name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in found:
        assert runner.run(test).failed == 0


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_document_their_parameters(name):
    text = inspect.getdoc(FUNCTIONS[name])
    parameters = [name for name in inspect.signature(FUNCTIONS[name]).parameters if not name.startswith("_")]
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n>>>")[0]
    heads = re.findall(r"^(\w+(?:, \w+)*):", section, re.MULTILINE)
    assert set(parameters) == {parameter for head in heads for parameter in head.split(", ")}
