"""Turn the docstrings of the project into Markdown, for scripts/make-api-docs.

Docstrings are paragraphs, lists and doctests, with the parameters under their heading, one after another:

    Parameters
    ----------
    epsilon: the privacy budget of one report.
    low, high: the ends.

References such as :class:`Plan` become links if the name has a section of its own, and doctests become blocks of code.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

Link = Callable[[str], str | None]
"""The address of a name's section, as seen from the page; None if it has none."""

WIDTH = 120
PARAMETERS = "Parameters\n----------\n"
ENTRY = re.compile(r"[\w*]+(?:, [\w*]+)*: ")
ROLE = re.compile(r":\w+:`~?\.?([^`]*)`")
LITERAL = re.compile(r"``(.+?)``", flags=re.DOTALL)
PACKAGE = re.compile(r"^sunzi\.([a-z_]+\.)*(?=[A-Z])")  # a class is known by its own name
PAGE = re.compile(r"\bdocs/([\w-]+)\.md\b")


def markdown(docstring: str, link: Link) -> str:
    """A whole docstring as Markdown, for a page in a folder of docs/."""
    before, _, after = docstring.partition(PARAMETERS)
    parts = list(_blocks(before, link))
    if after:
        entries, rest = _split(after)
        parts += ["**Parameters**", "\n".join(_entry(entry, link) for entry in entries), *_blocks(rest, link)]
    return "\n\n".join(parts)


def parameters(docstring: str) -> set[str]:
    """The names that a docstring documents as parameters."""
    entries, _ = _split(docstring.partition(PARAMETERS)[2])
    return {name for entry in entries for name in entry.partition(": ")[0].split(", ")}


def inline(text: str, link: Link) -> str:
    """References, code and names of pages within a paragraph."""
    text = LITERAL.sub(lambda found: f"`{found[1]}`", ROLE.sub(lambda found: _reference(found[1], link), text))
    return PAGE.sub(lambda found: f"[{found[1]}](../{found[1]}.md)", text)


def _reference(name: str, link: Link) -> str:
    shown, target = PACKAGE.sub("", name), link(name)
    return f"[`{shown}`]({target})" if target else f"`{shown}`"


def _blocks(text: str, link: Link) -> Iterator[str]:
    """The paragraphs, lists and doctests of a text."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if not block.strip():
            continue
        if block.lstrip().startswith(">>>"):
            yield f"```pycon\n{textwrap.dedent(block)}\n```"
        elif block.lstrip().startswith("- "):
            yield "\n".join(_items(textwrap.dedent(block), link))
        else:
            yield _wrapped(block, link)


def _items(block: str, link: Link, indent: str = "") -> Iterator[str]:
    for item in re.split(r"\n(?=- )", block):
        yield _wrapped(item, link, indent, f"{indent}  ")


def _split(section: str) -> tuple[list[str], str]:
    """The entries of a section of parameters, with their lines; and the text after it."""
    entries: list[str] = []
    lines = section.splitlines()
    for number, line in enumerate(lines):
        if ENTRY.match(line):
            entries.append(line)
        elif not line or line.startswith(" "):
            entries[-1] += f"\n{line}"
        else:
            return entries, "\n".join(lines[number:])
    return entries, ""


def _entry(entry: str, link: Link) -> str:
    """One item of a list for the parameters that share a text, with the list that belongs to it, if any."""
    names, _, text = entry.partition(": ")
    text, _, nested = text.partition("\n\n")
    named = ", ".join(f"`{name}`" for name in names.split(", "))
    lines = [_wrapped(f"- {named}: {text}", link, "", "  ")]
    if nested.strip():
        lines += ["", *_items(textwrap.dedent(nested).strip(), link, "  ")]
    return "\n".join(lines)


def _wrapped(text: str, link: Link, first: str = "", later: str = "") -> str:
    joined = inline(" ".join(text.split()), link)
    return textwrap.fill(
        joined, WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
