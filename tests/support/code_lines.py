"""Lines of code: without blank lines, comments and docstrings. Run as a script, it corrects the counts of
docs/auditing-the-client.md.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "auditing-the-client.md"
FOLDERS = {".py": ROOT / "src" / "sunzi" / "client", ".ts": ROOT / "clients" / "javascript" / "src"}
_ROW = re.compile(r"^\| (\d|all \w+) \|([^|]*)\| [\d,]+ \|", re.MULTILINE)
_FILE = re.compile(r"`([\w/]+\.(?:py|ts))`")
_SPACE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def python_lines(text):
    """Lines that hold a token of code.

    >>> python_lines('def one():\\n    "It is one."\\n\\n    # as said\\n    return 1\\n')
    2
    """
    prose = set()
    for node in ast.walk(ast.parse(text)):
        # A docstring, of an attribute too.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, node.end_lineno + 1))
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SPACE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - prose)


def typescript_lines(text):
    """Lines that are neither blank nor comments; a comment behind code does not matter, nor does one within.

    >>> typescript_lines('/** One. */\\n/**\\n * Two.\\n */\\n// three\\n\\nconst one = 1; // it is\\n')
    1
    """
    without = re.sub(r"^\s*(/\*.*?\*/|//[^\n]*)\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return sum(bool(line.strip()) for line in without.splitlines())


def lines_of(name):
    """The lines of code of one file, by its path below the folder of its language."""
    suffix = Path(name).suffix
    text = (FOLDERS[suffix] / name).read_text("utf-8")
    return {".py": python_lines, ".ts": typescript_lines}[suffix](text)


def files_of(suffix):
    """All files of a language, except those of Python that only describe their folder."""
    names = {path.relative_to(FOLDERS[suffix]).as_posix() for path in FOLDERS[suffix].rglob(f"*{suffix}")}
    return {name for name in names if lines_of(name)}


def listed(page):
    """The files of every row of the page."""
    return [_FILE.findall(row[2]) for row in _ROW.finditer(page)]


def corrected(page):
    """The page with the right counts."""

    def right(row):
        names = _FILE.findall(row[2])
        if row[1].startswith("all "):
            names = files_of({"Python": ".py", "TypeScript": ".ts"}[row[1].split()[-1]])
        return f"| {row[1]} |{row[2]}| {sum(map(lines_of, names)):,} |"

    return _ROW.sub(right, page)


if __name__ == "__main__":
    PAGE.write_text(corrected(PAGE.read_text("utf-8")), "utf-8")
