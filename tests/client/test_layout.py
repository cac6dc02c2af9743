"""What a device runs is small and stands alone: the standard library, one folder, and nothing above it."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from code_lines import python_lines

import sunzi
import sunzi.client.plan as trusted_plan
from sunzi.client.designs.response import BlockResponse

SOURCE = Path(__file__).resolve().parents[2] / "src"
CLIENT = SOURCE / "sunzi" / "client"

MOST_LINES = {
    "core": 639,
    "domains": 600,
    "designs": 645,
    "protocols": 653,
    "device": 863,
}
"""Lines of code, without blanks, comments and docstrings, of each folder of the client and of the files next to them.
Whoever reads the client reads all of them.
"""
MOST_LINES_IN_TOTAL = 3400
MOST_LINES_OF_LABELS, MOST_LINES_OF_A_PLAN = 1400, 2200
"""From ``load_plan`` to the bytes of a report."""

LABELS = ["Firefox", "Chrome", "Safari", "Edge"]
PLANS = {
    **{name: (sunzi.make_plan(name, LABELS, 1), "Safari") for name in sunzi.catalogue()},
    "pgr, projective": (sunzi.make_plan("pgr", 13, 1, order=3), 5),
    "ss-compact, cyclotomic": (sunzi.make_plan("ss-compact", 1000, 1), 5),
    "mss, subsets": (sunzi.make_plan("mss", [f"label {number}" for number in range(1000)], 1), "label 7"),
    "ordered": (sunzi.make_ordered(0, 100, 16, 1), 40),
    "number": (sunzi.make_number(0, 100, 1), 40.5),
    "tables": (
        sunzi.make_tables({"a": ["x", "y"], "b": sunzi.OrderedDomain(0, 9, 3)}, [("a", "b"), ("b",)], 1),
        {"a": "x", "b": 4},
    ),
    "prefixes": (sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=4), 1, cells=1000), "word"),
}
OF_LABELS = ("grr", "ss-compact", "ss-compact, cyclotomic", "mss", "mss, subsets")

REPORT = """
import sys
sys.path.insert(0, sys.argv[1])
from sunzi.client import load_plan
import json
given = json.loads(sys.stdin.read())
open("plan.json", "w").write(given["plan"])
report = load_plan("plan.json").client(max_epsilon=1).report(given["value"])
print(json.dumps([report.hex(), {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}]))
"""
DEVICE = """
import sys
sys.path.insert(0, sys.argv[1])
import sunzi.client
for name in sunzi.client.__all__:
    getattr(sunzi.client, name)
from sunzi.client import Device, Sender, load_plan, notice
import json
given = json.loads(sys.stdin.read())
open("plan.json", "w").write(given["plan"])
plan, epoch = load_plan("plan.json"), "http://127.0.0.1:9/v1/collections/default/epochs/1"
device = Device("device.db", 1, max_epsilon=1)
notice(plan, "x"), device.preview(plan, "x", given["value"], epoch), device.enable()
queued = device.queue(plan, "x", given["value"], epoch)
device.flush(Sender(patience=0))
report = device.waiting()[0].body
print(json.dumps([report.hex(), {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}]))
"""


def loaded(program, name, directory):
    """The modules that a fresh process without installed packages loads for a report of a plan, with their files."""
    plan, value = PLANS[name]
    given = json.dumps({"plan": plan.canonical.decode(), "value": value})
    command = [sys.executable, "-I", "-S", "-c", program, str(SOURCE)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(directory)}
    run = subprocess.run(
        command, input=given, capture_output=True, text=True, check=True, cwd=directory, env=environment
    )
    report, modules = json.loads(run.stdout)
    assert plan.tally([bytes.fromhex(report)]).reports == 1
    return modules


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("program", [REPORT, DEVICE], ids=["report", "device"])
def test_a_report_needs_the_standard_library_and_the_client_alone(tmp_path, program, name):
    modules = set(loaded(program, name, tmp_path))
    ours = {each for each in modules if re.fullmatch(r"sunzi(\.client(\..*)?)?", each)}
    assert len(ours) > 10
    assert {each.partition(".")[0] for each in modules - ours} <= {*sys.stdlib_module_names, "__main__"}


@pytest.mark.parametrize("name", PLANS)
def test_the_code_behind_a_report_is_short(tmp_path, name):
    files = {path for path in loaded(REPORT, name, tmp_path).values() if path and Path(path).is_relative_to(SOURCE)}
    total = sum(python_lines(Path(path).read_text("utf-8")) for path in files)
    assert total <= (MOST_LINES_OF_LABELS if name in OF_LABELS else MOST_LINES_OF_A_PLAN)


def test_the_whole_client_is_short():
    found = Counter()
    for path in CLIENT.rglob("*.py"):
        folder, *rest = path.relative_to(CLIENT).parts
        found[folder if rest else "core"] += python_lines(path.read_text("utf-8"))
    assert found.keys() == MOST_LINES.keys()
    assert {part: lines for part, lines in found.items() if lines > MOST_LINES[part]} == {}
    assert sum(MOST_LINES.values()) <= MOST_LINES_IN_TOTAL


DECIDES = {
    *("payload", "bounds", "is_member", "parameters", "from_parameters", "make_payloads", "work"),
    *("make_reports", "draw_cell", "answer", "select", "point_of", "numbered", "report_layout", "round_indices"),
    *("derive_thresholds", "check_domain", "check_attributes", "read_views", "cell_of", "epsilon"),
    *("index", "check_index", "key_of", "joined", "sizes", "number", "checked", "matched", "from_json", "to_json"),
    *("from_terms", "canonical", "digest", "report", "report_index", "report_background", "is_private"),
}
"""Some of what the client decides; the test below looks at all of it."""
OPERATORS_OWN = {
    "protocol_kind": "plans build the operator's classes",
    "domain_kind": "plans build the operator's classes",
    "response_kind": "plans build the operator's classes",
    "design_kind": "plans build the operator's classes, and registered designs",
    "view_kind": "plans build the operator's classes",
    "kind": "records build the operator's classes",
    "responses": "the same responses; a plug-in may have none",
    "__init__": "domains also read columns",
    "__post_init__": "numpy's tables have limits, beyond those of the client",
    "client": "plans make clients with batches",
    "report_batch": "batches are vectorised; test_equality.py compares them",
    "shown": "display",
    "refusal": "display",
    "__repr__": "display",
}
"""The only attributes of trusted classes that the operator's classes replace, and why. None of them draws, rounds,
encodes or checks anything of a report on a device, which does not load them.
"""
GENERATED = {"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"}


def is_trusted(kind):
    return kind.__module__.startswith("sunzi.client")


def _operators_classes():
    """The concrete classes of the operator's side that derive from a class of the client. The abstract ones serve
    registered plug-ins, which only have vectorised randomisers.
    """
    paths = [SOURCE / "sunzi" / "plan.py", SOURCE / "sunzi" / "batch_client.py"]
    paths += [path for part in ("designs", "protocols", "domains") for path in (SOURCE / "sunzi" / part).glob("*.py")]
    for path in sorted(paths):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for kind in vars(importlib.import_module(name)).values():
            is_ours = inspect.isclass(kind) and kind.__module__ == name
            if is_ours and any(map(is_trusted, kind.__mro__)) and not inspect.isabstract(kind):
                yield kind


OPERATORS_CLASSES = list(_operators_classes())


def is_generated(kind, attribute):
    """Whether the standard library wrote it: a frozen dataclass, or an abstract base class."""
    value = vars(kind)[attribute]
    if attribute in GENERATED and "__dataclass_params__" in vars(kind):
        return attribute != "__init__" or kind.__dataclass_params__.init
    return attribute.startswith(("__", "_abc_")) and not callable(value)


@pytest.mark.parametrize("kind", OPERATORS_CLASSES, ids=lambda kind: kind.__name__)
def test_the_operators_classes_decide_nothing_about_reports(kind):
    names = {name for base in kind.__mro__ if is_trusted(base) for name in vars(base)}
    owners = {name: next(base for base in kind.__mro__ if name in vars(base)) for name in names}
    replaced = {name for name, base in owners.items() if not is_trusted(base) and not is_generated(base, name)}
    assert replaced - OPERATORS_OWN.keys() == set()


def test_all_that_decides_is_looked_at():
    kinds = OPERATORS_CLASSES
    names = {name for kind in kinds for base in kind.__mro__ if is_trusted(base) for name in vars(base)}
    assert names >= DECIDES
    assert DECIDES.isdisjoint(OPERATORS_OWN)
    trusted = {trusted_plan.Plan.protocol_kind(name) for name in trusted_plan._PROTOCOLS}
    trusted |= {trusted_plan.Plan.domain_kind(name) for name in trusted_plan._DOMAINS}
    trusted |= {BlockResponse.design_kind(name) for name in ("singletons", "subsets", "cyclotomic", "projective")}
    trusted |= {trusted_plan.Plan, BlockResponse}
    for kind in trusted:
        assert any(issubclass(each, kind) for each in kinds), f"the operator's side of {kind.__name__} is missing"


@pytest.mark.parametrize("attribute", ["make_reports", "point_of", "derive_thresholds"])
def test_a_class_that_decides_is_found(attribute):
    """A planted one, since the tests above pass if they look at nothing."""
    kind = next(kind for kind in OPERATORS_CLASSES if attribute in dir(kind))
    planted = type("Planted", (kind,), {attribute: lambda *arguments: None, "__module__": "sunzi.protocols.planted"})
    with pytest.raises(AssertionError, match=attribute):
        test_the_operators_classes_decide_nothing_about_reports(planted)
