"""Use the installed wheel in an environment with numpy and scipy only. Run by scripts/test, not by pytest.

It proves that the wheel is complete and that the core works without any extra.
"""

import contextlib
import importlib.metadata
import importlib.util
import io
import json
import re
import sys
import tempfile
from pathlib import Path

import sunzi
from sunzi.cli.main import main

ALLOWED = {"numpy", "scipy", "sunzi", "pip", "setuptools", "wheel"}
EXTRAS = ("numba", "matplotlib", "pandas", "polars", "pyarrow", "fastapi", "uvicorn", "prometheus_client", "psycopg")
SIZE, USERS, EPSILON = 30, 5_000, 2


def check_environment() -> None:
    """No other package is installed, and the tested package is the wheel's, with its type marker."""
    installed = {distribution.metadata["Name"].lower() for distribution in importlib.metadata.distributions()}
    assert installed <= ALLOWED, f"this environment should not contain {sorted(installed - ALLOWED)}"
    assert not [name for name in EXTRAS if importlib.util.find_spec(name)]
    package = Path(sunzi.__file__).parent
    assert package.is_relative_to(sys.prefix), f"sunzi was imported from {package}, not from the wheel"
    assert (package / "py.typed").is_file()
    assert importlib.metadata.version("sunzi") == sunzi.__version__


def check_bill_of_materials() -> None:
    """The wheel contains its bill of materials (PEP 770), which lists what the wheel requires and the extras."""
    (path,) = [each for each in importlib.metadata.files("sunzi") or [] if each.parent.name == "sboms"]
    bill = json.loads(path.read_text())
    assert bill["metadata"]["component"]["version"] == sunzi.__version__
    required = {each["name"] for each in bill["components"] if each["scope"] == "required"}
    assert required == {"numpy", "scipy"}
    stated = {re.match(r"[\w-]+", each)[0].lower() for each in importlib.metadata.requires("sunzi") or []}
    listed = {each["name"] for each in bill["components"]}
    assert {"fastapi", "numba", "matplotlib"} <= stated & listed


def check_protocol(name: str, directory: Path) -> None:
    """From values to an estimate, files included; the estimate must be within seven standard errors of the truth."""
    plan = sunzi.make_plan(name, domain=SIZE, epsilon=EPSILON)
    plan.save(directory / "plan.json")
    plan = sunzi.load_plan(directory / "plan.json")
    values = [min(index % SIZE, index % 7) for index in range(USERS)]
    client = plan.client(seed=7)
    tally = plan.tally(client.report_batch(values[: USERS // 2])) + plan.tally(
        client.report_batch(values[USERS // 2 :])
    )
    tally.save(directory / "tally")
    tally = sunzi.load_tally(directory / "tally")
    assert tally.reports == USERS
    estimate = plan.estimate(tally)
    truth = [values.count(index) / USERS for index in range(SIZE)]
    for frequency, error, expected in zip(estimate.frequencies, estimate.standard_errors(), truth, strict=True):
        assert error > 0
        assert abs(frequency - expected) <= 7 * error, f"{name}: {frequency} ± {error}, but the truth is {expected}"


def check_demo(directory: Path) -> None:
    """The command line works, and names the extra that a picture needs."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(["demo", "--users", "500", "--size", "30", "--output", str(directory / "demo.png")])
    assert code == 0
    assert "sunzi[plot]" in printed.getvalue()


def main_check() -> None:
    """Run every check; a failed assertion ends the program with an error."""
    check_environment()
    check_bill_of_materials()
    with tempfile.TemporaryDirectory() as directory:
        for name in sunzi.catalogue():
            check_protocol(name, Path(directory))
        check_demo(Path(directory))
    assert not [name for name in EXTRAS if name in sys.modules]
    print(f"sunzi {sunzi.__version__} works alone: {', '.join(sunzi.catalogue())}")


if __name__ == "__main__":
    main_check()
