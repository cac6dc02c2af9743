"""The container file, parsed as a builder would. scripts/container-smoke builds and runs it, which takes minutes."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from running import running

import sunzi
from sunzi.cli.main import build_parser

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {"ARG", "FROM", "LABEL", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}


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
    assert set(words) <= KNOWN | {"ENTRYPOINT"}
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
            assert f"\n!{source}\n" in (ROOT / ".dockerignore").read_text(), source
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
    (user,) = (rest for word, rest in instructions() if word == "USER")
    assert user.isdigit()
    assert any(word == "RUN" and f"useradd --system --uid {user} " in rest for word, rest in instructions())
    assert ("EXPOSE", str(arguments.port)) in instructions()
    assert ("VOLUME", str(Path(arguments.store).parent)) in instructions()


def test_the_health_check_asks_the_collector(tmp_path):
    plan = sunzi.make_plan("grr", ["yes", "no"], epsilon=1)
    (check,) = (rest for word, rest in instructions() if word == "HEALTHCHECK")
    _, _, program = json.loads(check[check.index("[") :])
    with running(tmp_path / "store.db", {"default": plan}) as service:
        here = program.replace("http://127.0.0.1:8765", service.address)
        assert here != program
        assert subprocess.run([sys.executable, "-c", here], check=False).returncode == 0
    assert subprocess.run([sys.executable, "-c", here], capture_output=True, check=False).returncode != 0
