"""Every Python example in the pages of the project runs, each page from top to bottom in a fresh directory."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# The first runs in tests/tables, which makes sure of Java; the second shows parts of the source.
ELSEWHERE = {"cluster.md", "format.md"}


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_pages_have_examples() -> None:
    assert sum(len(blocks(page)) for page in PAGES) > 15


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page) and page.name not in ELSEWHERE], ids=lambda page: page.name
)
def test_examples_of_a_page(page: Path, tmp_path: Path, programs: Path) -> None:
    code = "\n".join(blocks(page))
    ast.parse(code)
    done = subprocess.run([programs / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_files(example: Path, tmp_path: Path, programs: Path) -> None:
    done = subprocess.run([programs / "python", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", prose):
        if "://" not in target:
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name} links to {target}, which does not exist"
            assert not anchor or anchor in anchors(file), (
                f"{page.name} links to {target}#{anchor}, which does not exist"
            )


def lines_of_prose(text: str) -> list[str]:
    """The lines of a page outside code, tables and lines that are a single link."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in text.splitlines() if not re.match(r"\||\s*([-*] )?!?\[[^]]*\]\([^)]*\)[,.;]?$", line)]


def test_markdown_wraps_at_120_columns() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split() or [str(page.relative_to(ROOT)) for page in PAGES]
    assert len(names) > 15
    long = {name: [line for line in lines_of_prose((ROOT / name).read_text()) if len(line) > 120] for name in names}
    assert {name: lines for name, lines in long.items() if lines} == {}


def test_error_table_is_complete() -> None:
    from sunzi import errors
    from sunzi.client import errors as client_errors

    listed = set(re.findall(r"^\| `(\w+Error)`", (ROOT / "docs" / "guide.md").read_text(), flags=re.MULTILINE))
    classes = {
        name
        for name, value in {**vars(errors), **vars(client_errors)}.items()
        if isinstance(value, type) and issubclass(value, errors.SunziError)
    }
    assert listed == classes - {"SunziError"}


def test_protocol_table_is_the_catalogue() -> None:
    import sunzi

    listed = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs" / "protocols.md").read_text(), flags=re.MULTILINE)
    assert tuple(listed) == sunzi.catalogue()


def test_cited_sections_of_the_mathematics_exist() -> None:
    page = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", page, flags=re.MULTILINE))
    folders = ("src", "tests", "benchmarks", "reproduction", "scripts", "docs", "examples", "clients")
    cited: dict[str, set[str]] = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*")):
        if path.suffix in {".py", ".md", ".js", ".ts", ""} and path.is_file() and "node_modules" not in path.parts:
            found = re.findall(r"mathematics\.md\s+§(\d+(?:\.\d+)?)", path.read_text(encoding="utf-8"))
            cited[str(path.relative_to(ROOT))] = set(found)
    assert {path: missing for path, numbers in cited.items() if (missing := numbers - sections)} == {}
    assert sum(bool(numbers) for numbers in cited.values()) > 15


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_named_files_exist(name: str) -> None:
    prose = re.sub(r"^```.*?^```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = {path for path in re.findall(r"`([\w.-]+/[\w./-]*)", prose) if not re.search("/x/|^build/", path)}
    assert len(named) > 15
    assert {path for path in named if not ((ROOT / path).exists() or (ROOT / "src" / "sunzi" / path).exists())} == set()


def packages_of_the_architecture() -> set[str]:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n## Packages\n")[2].partition("\nUsers need")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)/?`", cell)}


def test_architecture_names_every_package() -> None:
    package, listed = ROOT / "src" / "sunzi", packages_of_the_architecture()
    assert {name for name in listed if not ((package / name).is_dir() or (package / f"{name}.py").exists())} == set()
    assert {path.parent.name for path in package.glob("*/__init__.py")} <= listed


def test_architecture_shows_the_layers() -> None:
    page, listed = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), packages_of_the_architecture()
    shown = page.partition("\n## Who may import whom\n")[2].partition("```text\n")[2].partition("```")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["id"]: contract for contract in project["tool"]["importlinter"]["contracts"]}
    layers = contracts["layers"]["layers"]
    enforced = [[name for name in re.findall(r"\w+", layer) if name in listed] for layer in layers]
    assert [re.findall(r"\w+", line) for line in shown.splitlines()] == [layer for layer in enforced if layer]
