"""docs/threat-model.md: every defence names a test, and every test that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")


@cache
def functions_of(path):
    """The names of all functions in a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)
    assert len(named) >= 30
    missing = [
        f"{path}::{name}" for path, name in named if not (ROOT / path).exists() or name not in functions_of(path)
    ]
    assert missing == []


def test_every_defence_names_a_test():
    section = PAGE.partition("## What is defended\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 30
    for row in rows:
        assert re.search(r"\| `tests/[\w/]+\.py::test_\w+` \|$", row), row


def test_the_page_is_linked():
    for page in ("SECURITY.md", "README.md"):
        assert "docs/threat-model.md" in (ROOT / page).read_text("utf-8"), page
