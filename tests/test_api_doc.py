"""The reference of public names is up to date, and examples and other public code use no other names."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "make-api-docs"))
PUBLIC = SCRIPT["public_names"]()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").rglob("*.py"))


def examples(page: Path) -> str:
    return "\n".join(re.findall(r"^```py(?:thon)?\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL))


def names_in_prose(page: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`(sunzi(?:\.\w+)+)", prose)


def inner_names(code: str) -> list[str]:
    """Names that the code imports from Sunzi and that the page does not list."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found += [(node.module, alias.name) for alias in node.names]
    return [f"{module}.{name}" for module, name in found if module.split(".")[0] == "sunzi" and not known(module, name)]


def known(module: str, name: str | None) -> bool:
    return (name is None and module in PUBLIC) or name in PUBLIC.get(module, []) or f"{module}.{name}" in PUBLIC


def test_the_reference_is_up_to_date():
    assert SCRIPT["main"](["--check"]) == 0


def test_every_name_is_said_to_be_something():
    page = (ROOT / "docs" / "api.md").read_text()
    rows = re.findall(r"^\| \[`([^`]*)`\]\(api/[^)]*\) \| (.*) \|$", page, flags=re.MULTILINE)
    assert len(rows) == sum(map(len, PUBLIC.values()))
    assert [name for name, text in rows if len(text) < 10] == []


@pytest.mark.parametrize("path", [*PAGES, *PROGRAMS], ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_names_are_used(path):
    assert inner_names(path.read_text() if path.suffix == ".py" else examples(path)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_speaks_of_public_names_only(page):
    packages = {module.rpartition(".")[0] for module in PUBLIC}
    unknown = [name for name in names_in_prose(page) if name not in packages and not known(*name.rpartition(".")[::2])]
    assert unknown == []


def test_docstrings_become_markdown():
    docstring = """Tell :class:`Plan` from ``x`` (docs/batch.md).

Parameters
----------
low, high: the ends,
    on two lines.
options: some:

    - ``a``: one.
    - ``b``: two.

>>> 1 + 1
2"""
    page = SCRIPT["markdown"](docstring, {"Plan": "sunzi.md#class-plan"}.get)
    assert page.split("\n\n") == [
        "Tell [`Plan`](sunzi.md#class-plan) from `x` ([batch](../batch.md)).",
        "**Parameters**",
        "- `low`, `high`: the ends, on two lines.\n- `options`: some:",
        "  - `a`: one.\n  - `b`: two.",
        "```pycon\n>>> 1 + 1\n2\n```",
    ]


def test_long_signatures_take_a_line_for_each_parameter():
    def short(a: int, _private: int = 0, *, b: str = "x") -> str: ...
    def long(first_of_all_parameters: int, second_of_all_parameters: int, *, third_of_all_parameters: int) -> None: ...

    assert SCRIPT["signature"]("f", short) == '```python3\nf(a: int, *, b: str = "x") -> str\n```'
    assert SCRIPT["signature"]("a_long_name", long).count("\n") == 7


def test_inner_names_would_be_found():
    assert inner_names("from sunzi.numerics.primes import factorize\nimport sunzi.contract, numpy, sunzi") == [
        "sunzi.numerics.primes.factorize",
        "sunzi.contract.None",
    ]
    assert inner_names("from sunzi import Plan\nfrom sunzi.planning import recommend") == []
    assert inner_names("from sunzi import contract") == ["sunzi.contract"]
