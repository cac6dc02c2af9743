"""HTML for notebooks and pages: facts, tables and their style. Texts are escaped here, and nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterable, Sequence
from html import escape

# Nested below one class, so that nothing else in a notebook changes.
STYLE = """
.sunzi {
  p { max-width: 46rem; margin: .5rem 0; }
  .soft { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
  .key { display: inline-block; width: .9em; height: .9em; vertical-align: -.1em; background: var(--clear); }
  .key.unclear { background: var(--unclear); }
  .key.alone { background: none; box-shadow: inset 0 0 0 2px var(--clear); }
  .scroll { overflow-x: auto; margin: 1.5rem 0; }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th { font-weight: 600; color: var(--soft); font-size: .85rem; vertical-align: bottom; white-space: nowrap; }
  th, td { padding: 0 .6rem; text-align: right; }
  th:first-child, td:first-child { text-align: left; padding-left: 0; }
  td { white-space: nowrap; line-height: 26px; border-top: 1px solid var(--line); }
  .facts th { text-align: left; line-height: 26px; vertical-align: top; }
  .facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
  tr.chosen td { font-weight: 600; }
}
"""
PAGE_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5b6672; --line: #d9dfe5; --paper: #fff;
  --clear: #56b4e9; --unclear: #c9d1d9; --interval: #1d2329; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa5b1; --line: #333c45; --paper: #14181c;
  --clear: #3a8fc0; --unclear: #4a545e; --interval: #e6eaee; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
"""
"""The colours and fonts of a self-contained page, light or dark."""

# In a notebook the colours follow its theme, light or dark.
_NOTEBOOK_COLOURS = """
.sunzi { --soft: color-mix(in srgb, currentColor 65%, transparent); --interval: currentColor; --clear: #56b4e9;
  --line: color-mix(in srgb, currentColor 20%, transparent);
  --unclear: color-mix(in srgb, currentColor 25%, transparent);
  .scroll { margin: .5rem 0; } }
"""


def for_notebook(content: str, style: str = "") -> str:
    """Markup as a notebook shows it: with its style, in the colours of the notebook's theme."""
    return f'<div class="sunzi"><style>{_NOTEBOOK_COLOURS}{STYLE}{style}</style>\n{content}\n</div>'


def page(title: str, content: str, style: str = "", script: str = "") -> str:
    """A self-contained page, which loads nothing from elsewhere."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy, content = f"{policy}; script-src 'sha256-{digest}'", f"{content}\n<script>{script}</script>"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{PAGE_STYLE}{STYLE}{style}</style>
</head>
<body class="sunzi">
<h1>{escape(title)}</h1>
{content}
</body>
</html>
"""


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values, one pair per row."""
    rows = "\n".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts)
    return f'<table class="facts">\n{rows}\n</table>'


def plain_table(header: Sequence[str], rows: Iterable[Sequence[str]], chosen: Collection[int] = ()) -> str:
    """A table of texts; the rows numbered ``chosen`` are emphasised."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f'<tr class="chosen">{cells}</tr>' if number in chosen else f"<tr>{cells}</tr>")
    body = "\n".join(lines)
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
