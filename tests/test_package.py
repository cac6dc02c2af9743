"""The package as a whole: the cost and names of `import sunzi`, and consistency of the files that describe it."""

import importlib
import importlib.metadata
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sunzi

ROOT = Path(__file__).resolve().parents[1]
BILL = ROOT / "requirements" / "sunzi.cdx.json"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = ("numpy", "scipy")
EXTRAS = ("numba", "matplotlib", "pandas", "polars", "pyarrow")
SLOW_TO_IMPORT = ("scipy.optimize", "scipy.stats")


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def loaded_after(code: str, names: tuple[str, ...]) -> str:
    return run_python(f"import sys\n{code}\nprint(*(name for name in {names!r} if name in sys.modules))")


def pins(name: str) -> dict[str, str]:
    """The versions in a file of requirements; each must be exact and come with hashes, for pip's --require-hashes."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            matched = re.fullmatch(
                r"([\w.-]+)(?:\[[\w,-]+\])?==(\S+?)((?: +--hash=sha256:[0-9a-f]{64})+)", line.strip()
            )
            assert matched, f"requirements/{name}.txt: {line[:60]} has no exact version or no hash"
            found[matched[1].lower().replace("_", "-")] = matched[2]
    return found


def test_importing_sunzi_imports_nothing_heavy():
    assert loaded_after("import sunzi; dir(sunzi); sunzi.__version__; sunzi.SunziError", HEAVY + EXTRAS) == ""


@pytest.mark.slow
def test_using_a_name_loads_its_home_but_no_extra():
    loaded = loaded_after("import sunzi; sunzi.make_plan; sunzi.trend", HEAVY + SLOW_TO_IMPORT + EXTRAS)
    assert loaded in {"numpy", "numpy scipy"}


@pytest.mark.parametrize("name", sorted(set(sunzi.__all__) - {"__version__"}))
def test_every_public_name_is_the_one_at_its_home(name):
    value = getattr(sunzi, name)
    assert inspect.getdoc(value)
    assert getattr(importlib.import_module(value.__module__), value.__name__) is value
    assert value.__name__ == name


PACKAGES = ["analysis", "client", "collector", "designs", "planning", "protocols", "tables", "testing"]


@pytest.mark.parametrize("name", PACKAGES)
def test_packages_are_attributes_of_sunzi(name):
    """`import sunzi` is enough for sunzi.collector.serve(plan)."""
    program = f"import sunzi; assert sunzi.{name}.__name__ == 'sunzi.{name}'"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_dir_lists_all_and_unknown_names_are_refused():
    assert dir(sunzi) == sorted([*sunzi.__all__, *PACKAGES])
    with pytest.raises(AttributeError, match="module 'sunzi' has no attribute 'make_plam'"):
        sunzi.make_plam  # noqa: B018 - looked up for its error


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'sunzi' has no attribute 'make_plans'"):
        _ = sunzi.make_plans


def test_the_core_depends_on_numpy_and_scipy_only():
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["project"]["dependencies"]}
    assert names == set(HEAVY)
    assert set(pins("core")) == set(HEAVY)


def test_every_dependency_of_every_extra_is_pinned():
    pinned = pins("dev")
    for extra, requirements in PROJECT["project"]["optional-dependencies"].items():
        for requirement in requirements:
            name = re.match(r"[\w-]+", requirement)[0].lower()
            assert name in pinned or name == "sunzi", f"{name} of the extra {extra} has no pin in requirements/dev.txt"


@pytest.mark.parametrize("part", ["core", "demo", "container"])
def test_parts_of_the_development_environment_have_its_versions(part):
    assert pins(part).items() <= pins("dev").items()


@pytest.mark.parametrize("name", [path.stem for path in sorted((ROOT / "requirements").glob("*.txt"))])
def test_every_pin_has_hashes_and_a_command_that_renews_it(name):
    assert pins(name)
    assert f"compile {name} " in (ROOT / "scripts" / "make-requirements").read_text()


def citation() -> dict[str, str]:
    """The plain fields of CITATION.cff; cffconvert has checked its form."""
    return dict(re.findall(r"^([\w-]+): (.+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE))


def test_all_files_state_the_same_version():
    """As the release steps in CONTRIBUTING.md need it: a released version has its date in both changelogs."""
    client = json.loads((ROOT / "clients" / "javascript" / "package.json").read_text())
    locked = json.loads((ROOT / "clients" / "javascript" / "package-lock.json").read_text())
    assert client["version"] == locked["version"] == locked["packages"][""]["version"] == sunzi.__version__
    assert citation()["version"] == sunzi.__version__
    for changelog in (ROOT / "CHANGELOG.md", ROOT / "clients" / "javascript" / "CHANGELOG.md"):
        released = re.findall(r"^## \[(\d.*)\] - (\S+)$", changelog.read_text(), flags=re.MULTILINE)
        assert released[0] == (sunzi.__version__, citation()["date-released"])


def test_the_citation_agrees_with_the_package():
    (author,) = PROJECT["project"]["authors"]
    assert f"  - name: {author['name']}\n" in (ROOT / "CITATION.cff").read_text()
    assert citation()["license"] == PROJECT["project"]["license"]
    assert citation()["repository-code"] == PROJECT["project"]["urls"]["Homepage"]


def test_the_bill_of_materials_is_up_to_date():
    subprocess.run([sys.executable, ROOT / "scripts" / "make-sbom", "--check"], check=True)
    listed = {each["name"]: each for each in json.loads(BILL.read_text())["components"]}
    assert {name for name, each in listed.items() if each["scope"] == "required"} == set(pins("core"))
    assert {"fastapi", "numba", "psycopg", "pyspark", "starlette"} <= set(listed)
    assert "pytest" not in listed
    assert all(each["version"] == pins("dev")[name] for name, each in listed.items())


def test_the_environment_holds_the_pinned_versions():
    installed = {name: importlib.metadata.version(name) for name in pins("dev")}
    assert installed == pins("dev")


def skipping_suite(directory: Path, require_all: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a passing and a skipped test with this suite's conftest."""
    (directory / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (directory / "test_some.py").write_text(
        "import pytest\n\ndef test_passes():\n    assert True\n\ndef test_skips():\n    pytest.skip('no such part')\n"
    )
    environment = os.environ | {"SUNZI_REQUIRE_ALL": require_all, "PYTHONPATH": str(ROOT / "tests" / "support")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
        "-c",
        os.devnull,
        "--rootdir",
        ".",
        *arguments,
    ]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("-n", "1")])
def test_require_all_turns_a_skip_into_a_failure(tmp_path, arguments):
    run = skipping_suite(tmp_path, "1", *arguments)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout + run.stderr
    assert "1 passed, 1 skipped" in run.stdout
    assert "test_some.py::test_skips: Skipped: no such part" in run.stdout


@pytest.mark.slow
def test_a_skip_is_allowed_by_default(tmp_path):
    run = skipping_suite(tmp_path, "")
    assert run.returncode == pytest.ExitCode.OK, run.stdout + run.stderr
    assert "1 passed, 1 skipped" in run.stdout
