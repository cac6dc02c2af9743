"""Tests mirror the sources: the tests of src/sunzi/x/y.py are in tests/x/test_y.py, or in the suite named here."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sunzi"
TESTS = ROOT / "tests"
SUITES = {
    "": {
        "api_doc": "docs/api.md and docs/api/",
        "benchmarks": "the benchmarks",
        "claims": "the numbers that pages state in a sentence",
        "conformance": "the vectors of conformance/",
        "docs": "examples and form of the pages",
        "docstrings": "examples in docstrings",
        "format_doc": "docs/format.md",
        "fuzz": "damaged files of every kind",
        "gallery": "docs/gallery.md and docs/first-ten-minutes.md",
        "layout": "this file",
        "no_extras": "an installation without extras",
        "notebooks": "the notebooks of examples/",
        "package": "public names and metadata",
        "site": "the pages that scripts/docs builds the site from",
        "threat_model": "docs/threat-model.md",
        "tutorials": "the commands of the tutorials",
    },
    "analysis": {"faults": "faults planted in clients, and all the checks that must catch them"},
    "client": {
        "hostile": "what strangers send, and what applications pass by mistake",
        "equality": "the trusted randomisers and the vectorised ones, word for word",
        "layout": "what a device loads, how much code that is, and that nothing above it decides",
    },
    "client/device": {
        "budget": "budgets that end",
        "damage": "damaged device files",
        "device_power_cuts": "what a device has on disk when power fails",
        "sending": "queued reports, sent to collectors and to other servers",
    },
    "cli": {
        "pipes": "commands joined by pipes",
        "startup": "what each command imports",
        "tally_columns": "sunzi tally of a column of Parquet files",
    },
    "collector": {
        "damage": "damaged SQLite stores",
        "containerfile": "the container image",
        "deployment": "the files of docs/running.md",
        "crashes": "processes and servers that are killed, on both kinds of store",
        "kills": "the whole service, killed while clients send",
        "malformed": "requests of all kinds that are broken",
        "openapi": "the description of the service, and requests generated from it",
        "page_questions": "sums, changes, trends and groups on the live page",
        "page_records": "numbers and tables on the live page",
        "page_texts": "texts that were found on the live page",
        "power_cuts": "what a store has on disk when power fails",
        "proxy": "the proxies of examples/",
        "snippets": "the programs that the live page shows",
    },
    "protocols": {
        "immutability": "protocols, block responses and designs, which must not change",
    },
    "tables": {"spark_jobs": "jobs run by spark-submit and by sunzi tally, and the examples of docs/cluster.md"},
}
"""Suites that cover several modules, and their subject."""

TESTED_IN = {
    "__main__": "cli/test_main",
    "groups": "client/test_groups",
    "_typing": "test_package",
    "_version": "test_package",
    "batch_client": "client/test_client",
    "analysis/attack_plots": "cli/test_attack",
    "analysis/evidence": "analysis/test_attack",
    "analysis/fake_reports": "analysis/test_poisoning",
    "numerics/kernels": "numerics/test_subset_sampling",
    "numerics/support_probabilities": "client/test_thresholds",
    "protocols/base": "test_testing",
    "protocols/counting": "test_plan",
    "protocols/joint_fit": "analysis/test_health",
    "protocols/prefix_tables": "protocols/test_prefix_counts",
    "protocols/selection": "protocols/test_modular",
    "protocols/text_prior": "protocols/test_prefix_search",
    "tables/spark_session": "tables/test_spark_jobs",
    "domains/columns": "domains/test_labels",
    "collector/administration_routes": "collector/test_routes",
    "client/_lazy": "test_package",
    "client/designs": "client/test_equality",
    "client/domains": "client/test_equality",
    "client/epsilon": "client/test_thresholds",
    "client/errors": "test_errors",
    "client/protocols": "client/test_equality",
    "client/reports": "test_wire",
    "client/strict_json": "client/test_plan",
}
"""Modules and packages whose tests are elsewhere, since they are statements about several modules at once."""


def _modules():
    """Paths of all modules below src/sunzi, without suffix."""
    found = (path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py")))
    return [path.with_suffix("").as_posix() for path in found if path.stem != "__init__"]


def _mirrored():
    """The package itself and its packages that have tests."""
    folders = (folder.relative_to(SOURCE).as_posix() for folder in sorted(SOURCE.rglob("*")) if folder.is_dir())
    return ["", *(folder for folder in folders if any((TESTS / folder).glob("test_*.py")))]


@pytest.mark.parametrize("package", _mirrored())
def test_files_are_named_after_modules_or_suites(package):
    tests = {path.stem.removeprefix("test_") for path in (TESTS / package).glob("test_*.py")}
    modules = {path.stem for path in (SOURCE / package).iterdir()} - {"__init__"}
    suites = set(SUITES.get(package, ()))
    stray = tests - modules - suites
    assert not stray, f"tests/{package}: {sorted(stray)} match no module of src/sunzi/{package} and no suite"
    assert suites <= tests - modules, f"tests/{package}: {sorted(suites - (tests - modules))} are no suites"


def test_every_module_has_tests():
    for module in _modules():
        package, _, name = module.rpartition("/")
        elsewhere = TESTED_IN.get(module, TESTED_IN.get(package))
        own = TESTS / package / f"test_{name}.py"
        if elsewhere is None:
            assert own.exists(), f"write {own.relative_to(ROOT)}, or name the suite that tests {module}"
        else:
            assert (TESTS / f"{elsewhere}.py").exists(), f"{elsewhere} does not exist"
            is_own = module not in TESTED_IN  # a package may name a suite for the rest of its modules
            assert is_own or not own.exists(), f"{own.relative_to(ROOT)} exists, so {module} needs no other suite"


def test_no_map_names_a_module_that_is_gone():
    packages = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*") if path.is_dir()}
    assert set(TESTED_IN) <= {*_modules(), *packages}


def test_no_function_or_class_has_the_name_of_a_module_next_to_it():
    """So that `from sunzi.package import name` can mean only one thing."""
    for module in _modules():
        path = SOURCE / f"{module}.py"
        names = {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}
        neighbours = {each.stem for each in path.parent.iterdir()}
        assert names & neighbours <= {"main"}, f"{module}: rename the module or {sorted(names & neighbours)}"
