"""The container file, parsed as a builder would, because no builder runs here."""

import json
import re
import shlex
from pathlib import Path

from sunzi.cli.main import build_parser

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT"}


def instructions():
    """Pairs of instruction and arguments, with continued lines joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text())
    lines = [line.strip() for line in text.splitlines()]
    return [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]


def installations():
    commands = [command for word, rest in instructions() if word == "RUN" for command in rest.split("&&")]
    return [shlex.split(command) for command in commands if "pip install" in command]


def test_every_instruction_is_one():
    words = [word for word, _ in instructions()]
    assert set(words) <= KNOWN
    assert words[:2] == ["ARG", "FROM"]
    stages = [rest.split() for word, rest in instructions() if word == "FROM"]
    assert [stage[1:] for stage in stages] == [["AS", "build"], []]
    assert {stage[0] for stage in stages} == {"${BASE}"}
    name, _, digest = instructions()[0][1].partition("@sha256:")
    assert name == "BASE=docker.io/library/python:3.11-slim"  # the Python version of the pins
    assert re.fullmatch("[0-9a-f]{64}", digest)


def test_copied_files_exist():
    copied = [shlex.split(rest) for word, rest in instructions() if word == "COPY"]
    for *sources, _ in (words for words in copied if not words[0].startswith("--from")):
        for source in sources:
            assert (ROOT / source).exists(), source
    assert ["--from=build", "/sunzi", "/sunzi"] in copied


def test_everything_that_is_installed_is_pinned():
    packages, project = installations()
    assert project[-3:] == ["--no-build-isolation", "--no-deps", "."]
    assert packages[-3:] == ["--require-hashes", "--requirement", "requirements/container.txt"]
    pinned = (ROOT / packages[-1]).read_text()
    for name in ("psycopg[binary]", "psycopg-binary", "fastapi", "uvicorn", "hatchling", "numpy"):
        assert f"\n{name}==" in pinned


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
