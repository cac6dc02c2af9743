"""Tests mirror the sources: the tests of src/sunzi/x/y.py are in tests/x/test_y.py."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sunzi"
SUITES = {
    "analysis": {"faults": "faults planted in clients, and all the checks that must catch them"},
    "cli": {
        "collector_commands": "serve, simulate and store, together",
        "pipes": "commands joined by pipes",
        "startup": "what each command imports",
        "tally_and_merge": "both commands",
    },
    "collector": {
        "containerfile": "the container image",
        "crashes": "processes and servers that are killed, on both kinds of store",
        "kills": "the whole service, killed while clients send",
        "malformed": "requests of all kinds that are broken",
        "openapi": "the description of the service, and requests invented from it",
        "power_cuts": "what a store has on disk when power fails",
        "reading": "the routes that read",
        "snippets": "the programs that the live page shows",
        "store_contract": "what both kinds of store promise",
    },
    "device": {"device_power_cuts": "what a device has on disk when power fails"},
    "protocols": {
        "contract_suite": "sunzi.testing on every protocol",
        "immutability": "all objects that must not change",
    },
}
"""Suites that cover several modules, and their subject."""


def _mirrored():
    """Packages that have tests."""
    return [folder.name for folder in sorted(SOURCE.iterdir()) if (ROOT / "tests" / folder.name).is_dir()]


@pytest.mark.parametrize("package", _mirrored())
def test_files_are_named_after_modules(package):
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / package).glob("test_*.py")}
    modules = {path.stem for path in (SOURCE / package).iterdir()} - {"__init__"}
    stray = tests - modules - set(SUITES.get(package, ()))
    assert not stray, f"tests/{package}: {sorted(stray)} match no module of src/sunzi/{package} and no suite"
