"""The distribution sunzi-client: metadata, contents, types, and the example of its README.

scripts/test also installs its wheel, alone and beside sunzi's.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import sunzi
from sunzi.collector import Settings, serve
from sunzi.plan import make_plan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "clients" / "python"
SOURCE = ROOT / "src" / "sunzi" / "client"
MOST_BYTES = 150_000


def build(*arguments):
    command = [sys.executable, "-m", "build", "--no-isolation", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, the wheel from it, and in a folder the wheel from the repository."""
    directory = tmp_path_factory.mktemp("built")
    build("--outdir", directory, FOLDER)
    build("--wheel", "--outdir", directory / "tree", FOLDER)
    return directory


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The Python of an environment with the wheel alone."""
    directory = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    return python


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_the_version_is_that_of_sunzi(wheel):
    assert metadata(wheel)["Version"] == sunzi.__version__
    assert tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]


def test_the_metadata(wheel):
    about, other = metadata(wheel), tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert about.get_all("Requires-Dist") is None
    assert about["Requires-Python"] == other["requires-python"]
    assert about["License-Expression"] == other["license"]
    pythons = [each for each in other["classifiers"] if each.startswith("Programming Language")]
    assert [each for each in about.get_all("Classifier") if each.startswith("Programming Language")] == pythons
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_holds_the_one_source_and_is_small(wheel):
    assert wheel.stat().st_size <= MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if not name.startswith("sunzi_client-")}
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".pyi", ".typed"}]
    assert held == {f"sunzi_client/{path.relative_to(SOURCE).as_posix()}": path.read_bytes() for path in files}
    assert {"sunzi_client/py.typed", "sunzi_client/__init__.pyi"} <= set(held)
    others = [path for path in SOURCE.rglob("*") if path.is_file() and path not in files]
    assert {path.suffix for path in others} <= {".pyc"}, "the wheel would lack these"


def test_the_wheel_from_the_source_distribution_has_the_same_bytes(built, wheel):
    assert wheel.read_bytes() == (built / "tree" / wheel.name).read_bytes()


def test_the_source_distribution_needs_nothing_outside_it(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()} - {".gitignore"}
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".pyi", ".typed"}]
    modules = {f"sunzi_client/{path.relative_to(SOURCE).as_posix()}" for path in files}
    assert names == modules | {"LICENSE", "PKG-INFO", "README.md", "hatch_build.py", "pyproject.toml"}


USER = """
from pathlib import Path
import sunzi_client
from sunzi_client import Device, load_plan

plan = load_plan(Path("plan.json"))
reveal_type(plan)
reveal_type(plan.client(max_epsilon=1).report("Firefox"))
device = Device("device.db", lifetime_epsilon=3, max_epsilon="1/2")
reveal_type(device.queue(plan, "browser", "Firefox", "https://collector.example/v1/collections/a/epochs/1").outcome)
reveal_type(sunzi_client.notice(plan, "browser"))
Device("device.db", lifetime_epsilon=3)
"""


def test_its_types_are_those_that_users_see(environment, tmp_path):
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", environment, "--no-pretty", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    outcomes = ("queued", "repeated", "kept", "background", "silent", "off")
    assert [line for line in lines if "Revealed" in line] == [
        f'note: Revealed type is "{name}"'
        for name in ("sunzi_client.plan.Plan", "bytes", " | ".join(f"Literal['{each}']" for each in outcomes), "str")
    ]
    errors = [line for line in lines if line.startswith("error")]
    assert errors == ['error: Missing named argument "max_epsilon" for "Device"  [call-arg]'], done.stdout + done.stderr


def test_the_example_of_the_readme(environment, tmp_path):
    (example,) = re.findall(r"^```python\n(.*?)^```", (FOLDER / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert all(len(line) <= 120 for line in example.splitlines())
    inherited = {name: value for name, value in os.environ.items() if name not in {"DO_NOT_TRACK", "PYTHONPATH"}}
    plan = make_plan("grr", ["Firefox", "other"], epsilon=1)
    with serve(plan, settings=Settings(port=0)) as collector:
        program = example.replace("https://collector.example", collector.url) + "\nprint(device.spent('browser'))"
        for answer, spent in (("n", "0"), ("y", "1"), ("y", "1")):
            done = subprocess.run(
                [environment, "-c", program],
                cwd=tmp_path,
                input=f"{answer}\n",
                capture_output=True,
                text=True,
                check=False,
                env=inherited,
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.splitlines()[-1] == f"Do you agree? [y/N] {spent}"
            assert (tmp_path / "device.db").exists() is (spent == "1")
