"""The container file, parsed as a builder would, because no builder runs here."""

import json
import re
import shlex
from pathlib import Path

import pytest

from sunzi.cli.main import build_parser

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT"}


def instructions():
    """Pairs of instruction and arguments, with continued lines joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text())
    lines = [line.strip() for line in text.splitlines()]
    return [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]


def pinned(path):
    """The exact versions in a requirements file and in the files it includes."""
    found = set()
    for line in path.read_text().splitlines():
        if line.startswith("-r "):
            found |= pinned(path.parent / line.removeprefix("-r "))
        elif line and not line.startswith("#"):
            name, _, version = line.partition("==")
            assert version, line
            found.add(name.lower().replace("_", "-"))
    return found


def installations():
    commands = [command for word, rest in instructions() if word == "RUN" for command in rest.split("&&")]
    return [shlex.split(command) for command in commands if "pip install" in command]


def test_every_instruction_is_one():
    words = [word for word, _ in instructions()]
    assert set(words) <= KNOWN
    assert words[0] == "FROM"
    stages = [rest.split() for word, rest in instructions() if word == "FROM"]
    assert [stage[1:] for stage in stages] == [["AS", "build"], []]
    assert {stage[0] for stage in stages} == {"docker.io/library/python:3.11-slim"}  # the Python version of the pins


def test_copied_files_exist():
    copied = [shlex.split(rest) for word, rest in instructions() if word == "COPY"]
    for *sources, _ in (words for words in copied if not words[0].startswith("--from")):
        for source in sources:
            assert (ROOT / source).exists(), source
    assert ["--from=build", "/sunzi", "/sunzi"] in copied


def test_everything_that_is_installed_is_pinned():
    packages, project = installations()
    assert project[-3:] == ["--no-build-isolation", "--no-deps", "."]
    files = [
        ROOT / packages[place + 1] for place, word in enumerate(packages) if word in ("--requirement", "--constraint")
    ]
    assert [file.name for file in files] == ["demo.txt", "dev.txt"]
    assert packages[-1] == "psycopg[binary]"
    assert {"psycopg", "psycopg-binary", "fastapi", "uvicorn", "hatchling"} <= pinned(files[1])
    assert pinned(files[0]) <= pinned(files[1])


def test_it_starts_a_collector_as_a_separate_user(tmp_path):
    (_, entry), *_ = [pair for pair in instructions() if pair[0] == "ENTRYPOINT"]
    program, command, *options = json.loads(entry)
    assert (program, command) == ("/sunzi/bin/sunzi", "serve")
    arguments = build_parser("serve").parse_args(["serve", *options, "/plan.json"])
    assert (arguments.host, arguments.store) == ("0.0.0.0", "/data/sunzi.db")
    assert arguments.admin_token_file == "/token"
    assert ("USER", "sunzi") in instructions()
    assert ("EXPOSE", str(arguments.port)) in instructions()
    assert ("VOLUME", str(Path(arguments.store).parent)) in instructions()


@pytest.mark.parametrize("wrong", ["psycopg>=3.2", "psycopg"])
def test_a_version_that_is_not_exact_is_noticed(tmp_path, wrong):
    (tmp_path / "loose.txt").write_text(f"numpy==2.0\n{wrong}\n")
    with pytest.raises(AssertionError):
        pinned(tmp_path / "loose.txt")
