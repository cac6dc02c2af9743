"""Write the pages of the site from the Markdown files of the repository, for scripts/docs.

A page has the same text on the site as in the repository, except that

- a link to another page leads to that page, and a link to any other file to a copy of it on the site, which is shown as
  a page if it is source code; a link to a missing file or to a folder is an error. The README, which package indexes
  show too, has the addresses of these files in the public repository;
- a picture is a link to itself, so that it can be seen in full;
- lists get the indentation of four spaces and the empty line before them that Python-Markdown expects, and ``|`` in
  code within tables loses the backslash that it would show.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NAMED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "reproduction/REPORT.md": "reproduction/report.md",
}
"""Pages outside docs/, and their paths on the site."""

PUBLIC = re.compile("https://(?:github.com/sunzi-ldp/sunzi/blob|raw.githubusercontent.com/sunzi-ldp/sunzi)/main/")
"""Where the public repository shows its files, and as what they are."""

COPIED = {".csv", ".ipynb", ".json", ".pdf", ".png", ".svg", ".tsv"}
"""Files that are linked as they are; all others become pages that show their source."""

LANGUAGES = {
    ".conf": "nginx",
    ".js": "javascript",
    ".md": "markdown",
    ".py": "python",
    ".service": "ini",
    ".timer": "ini",
    ".ts": "typescript",
    ".yml": "yaml",
}

FENCE = re.compile(r"^( *)(```+)")
LINK = re.compile(r"(`+[^`]*`+)|(\]\(|^\[[^]\n]+\]: )([^()\s#]+)((?:#[^()\s]*)?\)?)", re.MULTILINE)
PICTURE = re.compile(r"!\[[^]]*\]\(([^()\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")
ITEM = re.compile(r"( *)([-*] +|\d+\. +)")


class LinkError(Exception):
    """A page links to something that does not exist, or to a folder."""


def pages() -> dict[str, str]:
    """The path on the site of every page, by its path in the repository."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return NAMED | {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix() for path in docs}


def place(path: str) -> str:
    """The path on the site of a file of the repository.

    >>> place("docs/guide.md"), place("docs/pictures/batch.png"), place("tests/test_docs.py")
    ('guide.md', 'pictures/batch.png', 'source/tests/test_docs.py.md')
    """
    if path in (known := pages()):
        return known[path]
    if Path(path).suffix not in COPIED:
        return f"source/{path}.md"
    return path.removeprefix("docs/") if path.startswith(("docs/", "reproduction/")) else f"source/{path}"


def parts(text: str) -> Iterator[tuple[bool, str]]:
    """Split a page into code blocks and the text between them; the flag tells code."""
    part: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        found = FENCE.match(line)
        if not fence and found:
            yield False, "".join(part)
            part, fence = [line], found[2]
        elif fence and line.strip() == fence:
            yield True, "".join([*part, line])
            part, fence = [], ""
        else:
            part.append(line)
    yield bool(fence), "".join(part)


def with_links(page: str, text: str, linked: set[str]) -> str:
    """Point the links of a page to places on the site, and add the files that they lead to to ``linked``."""
    here = Path(place(page)).parent

    def moved(found: re.Match[str]) -> str:
        code, opening, target, closing = found.groups()
        folder = (ROOT / page).parent
        if target and PUBLIC.match(target):
            folder, target = ROOT, PUBLIC.sub("", target)
        if code or ":" in target:
            return found[0]
        path = os.path.relpath(folder.joinpath(target).resolve(), ROOT).replace(os.sep, "/")
        if not (ROOT / path).is_file() or path.startswith("../"):
            raise LinkError(f"{page} links to {target}, which is not a file of the repository")
        linked.add(path)
        return f"{opening}{os.path.relpath(place(path), here).replace(os.sep, '/')}{closing}"

    return "".join(part if code else LINK.sub(moved, part) for code, part in parts(text))


def with_linked_pictures(text: str) -> str:
    """Make every picture a link to itself.

    >>> with_linked_pictures("![bars](a.png)")
    '[![bars](a.png)](a.png)'
    """
    return "".join(part if code else PICTURE.sub(r"[\g<0>](\1)", part) for code, part in parts(text))


def with_bare_bars(text: str) -> str:
    r"""Remove the backslash from ``\|`` in the code of tables, where GitHub needs it and Python-Markdown shows it.

    >>> print(with_bare_bars(r"| `int \| None` |"))
    | `int | None` |
    """

    def bare(row: re.Match[str]) -> str:
        return CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])

    return "".join(part if code else re.sub(r"^\|.*", bare, part, flags=re.MULTILINE) for code, part in parts(text))


def with_wide_lists(text: str) -> str:
    """Indent what belongs to a list item by four spaces per level, and end paragraphs before a list by an empty line.

    >>> print(with_wide_lists("Some:\\n- one\\n  - two\\n    more"))
    Some:
    <BLANKLINE>
    - one
        - two
            more
    """
    lines: list[str] = []
    columns: list[int] = []  # where the text of each enclosing item starts
    fence = ""
    in_paragraph = False  # since the last empty line, outside lists or as a later paragraph of an item
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        item = None if fence else ITEM.match(line)
        if item and in_paragraph and not columns and item[2].strip() not in {"-", "*", "1."}:
            item = None  # a wrapped line that happens to start with a number
        after_blank = not lines or not lines[-1].strip()
        if line.strip() and not fence and (after_blank or item or FENCE.match(line)):
            columns = [column for column in columns if column <= indent]
        level = sum(column <= indent for column in columns)
        shift = 4 * level - (columns[level - 1] if level else 0)
        if item and in_paragraph:
            lines.append("")
        lines.append(" " * (indent + shift) + line[indent:] if line.strip() else line)
        if item:
            columns = [*columns[:level], len(item[0])]
        if not line.strip() or item:
            in_paragraph = False
        elif after_blank:
            in_paragraph = True
        if found := FENCE.match(line):
            fence, in_paragraph = ("" if fence else found[2]), False
    return "\n".join(lines)


def source_page(path: str) -> str:
    """A page that shows a file of the repository, left out of the search."""
    text = (ROOT / path).read_text(encoding="utf-8")
    fence = "`" * (3 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n{fence}{language}\n{text}{fence}\n"


def write(folder: Path) -> None:
    """Write all pages, and the files that they link to, to an empty folder."""
    shutil.copytree(ROOT / "docs" / "assets", folder / "assets")
    linked: set[str] = set()
    for page in pages():
        text = with_links(page, (ROOT / page).read_text(encoding="utf-8"), linked)
        text = with_wide_lists(with_bare_bars(with_linked_pictures(text)))
        _write_text(folder / place(page), text)
    for path in sorted(linked - set(pages())):
        target = folder / place(path)
        if target.suffix == ".md":
            _write_text(target, source_page(path))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, target)


def _write_text(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")


def main() -> int:
    """Replace the folder named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write; replaced if it exists")
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    try:
        write(folder)
    except LinkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
