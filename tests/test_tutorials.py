"""The tutorials work: every command runs, each page from top to bottom in a fresh directory, and prints what it shows.

Reports are random, so numbers and fingerprints are not compared by value. A line ``...`` in a page stands for any
lines.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sunzi

pytestmark = pytest.mark.slow

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
PAGES = sorted(TUTORIALS.glob("*.md"))
# Pages show these only where a command is meant to fail.
FAILURES = ("sunzi: error:", "  damaged  ")


def commands(page: Path) -> list[tuple[str, str]]:
    """Each command with the output shown on the page."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith(">"):
                found[-1] = (found[-1][0] + line[1:].removeprefix(" "), found[-1][1])
            else:
                found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def normalised(text: str) -> str:
    """Replace fingerprints and numbers by # and runs of spaces by one space."""
    text = re.sub(r"(?<![\w.])[0-9a-f]{16,}", "#", text)
    text = re.sub(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?", "#", text)
    return "\n".join(re.sub(r" +", " ", line).rstrip() for line in text.strip().splitlines())


def shell(command: str, directory: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = os.environ | {"PATH": os.pathsep.join(paths), "PYTHONPATH": str(Path(sunzi.__file__).parents[1])}
    environment["COLUMNS"] = "80"
    return subprocess.run(
        ["sh", "-c", command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_there_is_a_page_for_each_kind_of_user():
    assert {page.stem for page in PAGES} >= {"telemetry-engineer", "researcher", "analyst"}


@pytest.mark.skipif(shutil.which("sh") is None, reason="the commands are written for a POSIX shell")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page(page, tmp_path, programs):
    steps = commands(page)
    assert len(steps) >= 5
    for command, shown in steps:
        done = shell(command, tmp_path, programs)
        should_fail = any(mark in shown for mark in FAILURES)
        assert (done.returncode != 0) == should_fail, f"{command}exited with {done.returncode}:\n{done.stdout}"
        pattern = re.escape(normalised(shown)).replace(re.escape("..."), r"(?s:.*)")
        assert re.fullmatch(pattern, normalised(done.stdout)), f"{command}printed\n{done.stdout}\nnot\n{shown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", prose)
    assert targets
    for target, anchor in targets:
        linked = page.parent / target
        assert linked.is_file(), f"{page.name} links to {target}, which does not exist"
        headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, f"{page.name} links to {target}#{anchor}, which does not exist"


def test_normalising_hides_numbers_only():
    assert normalised("a 1,234.5 b  -0.2 %") == normalised("a 7 b 31 %")
    assert normalised("plan 0123456789abcdef…") == normalised("plan fedcba9876543210…")
    assert normalised("0,0.1569281032000592634") == normalised("12,-0.07") == "#,#"
    assert normalised("whole: 3") != normalised("damaged: 3")
