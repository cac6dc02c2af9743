"""docs/auditing-the-client.md: its counts, its commands, and the functions, tests and imports that it names."""

import ast
import doctest
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict

import code_lines
import pytest
from code_lines import FOLDERS, PAGE, ROOT, corrected, files_of, listed

from sunzi._version import __version__

TEXT = PAGE.read_text("utf-8")
CLIENT = FOLDERS[".py"]
# Parts of the standard library that reach neither the network nor files, and start nothing.
COMPUTING = {"__future__", "abc", "bisect", "collections.abc", "concurrent.futures", "contextlib", "dataclasses"}
COMPUTING |= {"datetime", "decimal", "fractions", "functools", "gzip", "hashlib", "hmac", "io", "ipaddress"}
COMPUTING |= {"itertools", "json", "math", "numbers", "operator", "re", "struct", "sys", "time", "types", "typing"}
COMPUTING |= {"urllib.parse", "zlib"}


def section(title):
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title):
    """The cells of the table of a section, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_lines_are_counted_as_the_page_says():
    assert doctest.testmod(code_lines) == (0, 2)
    assert corrected(TEXT) == TEXT, "run python tests/support/code_lines.py"


@pytest.mark.parametrize("suffix", [".py", ".ts"])
def test_every_file_is_read_in_one_step(suffix):
    names = [name for row in listed(TEXT) for name in row if name.endswith(suffix)]
    assert sorted(names) == sorted(files_of(suffix))


def functions_of(path):
    """The functions and methods of a module, as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        found |= {node.name} if isinstance(node, ast.FunctionDef) else set()
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


def test_every_promise_is_decided_in_functions_that_exist():
    checked = 0
    for _, decided, _ in rows("What is promised, where it is decided, what proves it"):
        for part in decided.split("; "):
            path, _, names = part.partition(": ")
            for name in re.findall(r"`([\w.]+)`", names):
                assert name in functions_of(CLIENT / path.strip("`")), part
                checked += 1
    assert checked > 15


def test_every_promise_has_tests_that_exist():
    for promise, _, tests in rows("What is promised, where it is decided, what proves it"):
        named = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert named, promise
        assert [name for name in named if not (ROOT / name).exists()] == []


def imports_of(path):
    """The modules of the standard library that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module)


def test_what_is_imported():
    found = defaultdict(set)
    for path in CLIENT.rglob("*.py"):
        for name in imports_of(path):
            assert name.partition(".")[0] in sys.stdlib_module_names
            found[name].add(path.relative_to(CLIENT).as_posix())
    shown = {}
    for modules, importers, _ in rows("What it imports"):
        shown |= {name: set(re.findall(r"`([\w/.]+)`", importers)) for name in re.findall(r"`([\w.]+)`", modules)}
    assert {name: paths for name, paths in found.items() if name not in COMPUTING} == shown


def commands(title):
    """The commands of a section, for this machine and without a package index."""
    blocks = re.findall(r"^```console\n(.*?)^```", section(title), flags=re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    assert len(lines) >= 3
    return "\n".join(["set -eu", *(line for line in lines if not line.startswith("git clone"))]).replace(
        "X.Y.Z", __version__
    )


def run(program, directory, **environment):
    done = subprocess.run(
        ["bash", "-c", program],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def clone(tmp_path):
    """As much of a fresh clone as the commands need."""
    folder, unwanted = tmp_path / "clone", shutil.ignore_patterns("__pycache__", "dist", "node_modules", "*.tgz")
    for name in ("clients/python", "clients/javascript", "src/sunzi/client"):
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    shutil.copy(ROOT / "src" / "sunzi" / "_version.py", folder / "src" / "sunzi" / "_version.py")
    return folder


@pytest.mark.slow
def test_the_installed_wheel_is_the_source(clone, tmp_path):
    """Instead of the index, pip finds the wheel that is built from the repository itself."""
    index = tmp_path / "index"
    build = f"'{sys.executable}' -m build --no-isolation"
    run(f"{build} --wheel --outdir '{index}' '{ROOT / 'clients' / 'python'}'", tmp_path)
    program = commands("Is it what is installed?").replace("python -m build", build)
    program = program.replace("python -m zipfile", f"'{sys.executable}' -m zipfile")
    program = program.replace("\npip ", f"\n'{sys.executable}' -m pip --disable-pip-version-check --quiet ")
    printed = run(program, clone, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    hashes = re.findall(r"^([0-9a-f]{64})  (\w+)/", printed, flags=re.MULTILINE)
    assert [folder for _, folder in hashes] == ["built", "published"]
    assert len({digest for digest, _ in hashes}) == 1


@pytest.mark.slow
def test_a_changed_wheel_is_noticed(clone, tmp_path):
    """The comparison of the modules fails if one of them differs."""
    bundle = clone / "bundle" / "sunzi_client"
    shutil.copytree(clone / "src" / "sunzi" / "client", bundle)
    command = commands("Is it what is installed?").splitlines()[-1]
    assert command.startswith("diff ")
    run(command, clone)
    with (bundle / "randomness.py").open("a") as module:
        module.write("\n")
    with pytest.raises(AssertionError, match=re.escape("randomness.py")):
        run(command, clone)


def test_the_npm_package_is_the_source(clone, tmp_path, client_directory):
    """Instead of the registry, npm packs another copy. The packages of the compiler are installed already."""
    modules = (client_directory / "node_modules").resolve()
    (clone / "clients" / "javascript" / "node_modules").symlink_to(modules)
    shutil.copytree(clone / "clients" / "javascript", tmp_path / "another", symlinks=True)
    (clone / "published").mkdir()
    program = commands("JavaScript").replace("npm ci && ", "").replace(f"sunzi@{__version__}", f"'{tmp_path}/another'")
    run(program, clone, npm_config_offline="true", npm_config_update_notifier="false")


def test_the_page_is_linked():
    for name in ("docs/threat-model.md", "docs/privacy.md", "SECURITY.md", "clients/python/README.md"):
        assert "auditing-the-client.md" in (ROOT / name).read_text("utf-8"), name
