"""The report: every claim of the paper, what was measured, and whether it holds, as Markdown and as one web page that
needs nothing else.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from sunzi.files import write_atomically

from .experiment import Claim, Experiment
from .table import Table

_MARKS = {"holds": "✔", "in part": "◐", "does not hold": "✘"}
_COUNTED = {"holds": "hold", "in part": "hold in part", "does not hold": "do not hold"}
_TITLE = "The paper, run again"
_PAPER = "“Private Frequency Estimation Via Residue Number Systems” (Arcolezi, AAAI 2026)"


@dataclass(frozen=True)
class _Section:
    """One experiment that has results."""

    experiment: Experiment
    table: Table
    claims: Sequence[Claim]
    notes: Sequence[str]

    @property
    def setting(self) -> str:
        """How much was run."""
        row = self.table.rows[0]
        trials = self.table.distinct("trials")
        runs = f", {_span(trials)} trials a point" if trials else ""
        return f"Scale {row['scale']}, seed {row['seed']}, sunzi {row['sunzi']}, {len(self.table)} rows{runs}."


def _span(numbers: Sequence[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def write_report(experiments: Sequence[Experiment], root: Path) -> None:
    """REPORT.md and report.html from all results in ROOT/results."""
    sections = [_section(experiment, root / "results" / f"{experiment.name}.csv") for experiment in experiments]
    found = [section for section in sections if section is not None]
    write_atomically(root / "REPORT.md", _markdown(found).encode())
    write_atomically(root / "report.html", _page(found, root / "results").encode())


def _section(experiment: Experiment, path: Path) -> _Section | None:
    if not path.exists():
        return None
    table = Table.load(path)
    return _Section(experiment, table, experiment.claims(table), experiment.notes(table))


def _introduction(sections: Sequence[_Section]) -> list[str]:
    verdicts = [claim.verdict for section in sections for claim in section.claims]
    counts = ", ".join(f"{verdicts.count(name)} {words}" for name, words in _COUNTED.items() if name in verdicts)
    return [
        f"Every claim that {_PAPER} makes about experiments, measured anew: {len(verdicts)} claims; {counts}.",
        "This report, its tables and its pictures are written by `sunzi reproduce`; errors behind ± are standard "
        "errors of the mean over trials, and a trial is a whole simulated collection.",
    ]


def _markdown(sections: Sequence[_Section]) -> str:
    lines = [f"# {_TITLE}", "", *(line for text in _introduction(sections) for line in (text, ""))]
    lines += ["| | claim of the paper | measured | experiment |", "|---|---|---|---|"]
    for section in sections:
        name = section.experiment.name
        for claim in section.claims:
            cells = [f"{_MARKS[claim.verdict]} {claim.verdict}", claim.words, claim.measured, f"[{name}](#{name})"]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for section in sections:
        lines += ["", *_markdown_section(section)]
    return "\n".join(lines) + "\n"


def _markdown_section(section: _Section) -> list[str]:
    experiment = section.experiment
    lines = [f"## {experiment.name}", "", f"**{experiment.title}.** Reproduces {experiment.reproduces}.", ""]
    for note in section.notes:
        lines += [note, ""]
    lines += [f"![{experiment.title}](results/{experiment.name}.svg)", ""]
    lines += [f"{section.setting} [Table](results/{experiment.name}.csv).", ""]
    for claim in section.claims:
        lines += [
            f"- {_MARKS[claim.verdict]} **{claim.verdict}**: “{claim.words}” ({claim.where})",
            f"  - measured: {claim.measured}",
            f"  - why: {claim.why}",
        ]
    return lines


_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5b6672; --line: #d9dfe5; --paper: #fff; --holds: #00664b;
  --part: #7a5b00; --fails: #a34700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa5b1; --line: #333c45; --paper: #14181c;
  --holds: #4fc9a4; --part: #e0b84c; --fails: #f0955a; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .25rem; }
p, dd { max-width: 50rem; } p { margin: .5rem 0; }
a { color: inherit; }
code { font-size: .92em; }
.soft { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; margin: 1.5rem 0; }
table { border-collapse: collapse; font-size: .92rem; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: .35rem .7rem .35rem 0; vertical-align: top; }
td { border-top: 1px solid var(--line); }
.verdict { white-space: nowrap; font-weight: 600; }
.holds { color: var(--holds); } .part { color: var(--part); } .fails { color: var(--fails); }
figure { margin: 1rem 0; padding: .75rem; background: #fff; border: 1px solid var(--line); border-radius: 6px; }
img { display: block; width: 100%; height: auto; }
dl { margin: 1rem 0; } dt { margin-top: 1rem; max-width: 50rem; } dd { margin: .25rem 0 0 1.5rem; }
"""
_CLASSES = {"holds": "holds", "in part": "part", "does not hold": "fails"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def _page(sections: Sequence[_Section], results: Path) -> str:
    introduction = "\n".join(f"<p>{_prose(text)}</p>" for text in _introduction(sections))
    body = "\n".join(_page_section(section, results) for section in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_TITLE}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{_TITLE}</h1>
{introduction}
{_overview(sections)}
{body}
</body>
</html>
"""


def _overview(sections: Sequence[_Section]) -> str:
    rows = [
        f"<tr><td>{_verdict(claim)}</td><td>{_prose(claim.words)}</td><td>{_prose(claim.measured)}</td>"
        f'<td><a href="#{section.experiment.name}">{section.experiment.name}</a></td></tr>'
        for section in sections
        for claim in section.claims
    ]
    heads = "".join(f"<th>{name}</th>" for name in ("", "claim of the paper", "measured", "experiment"))
    return f'<div class="scroll"><table>\n<tr>{heads}</tr>\n' + "\n".join(rows) + "\n</table></div>"


def _verdict(claim: Claim) -> str:
    return f'<span class="verdict {_CLASSES[claim.verdict]}">{_MARKS[claim.verdict]} {claim.verdict}</span>'


def _page_section(section: _Section, results: Path) -> str:
    experiment = section.experiment
    notes = "\n".join(f"<p>{_prose(note)}</p>" for note in section.notes)
    claims = "\n".join(
        f"<dt>{_verdict(claim)} “{_prose(claim.words)}” <span class=soft>({_prose(claim.where)})</span></dt>\n"
        f"<dd>Measured: {_prose(claim.measured)}</dd>\n<dd>{_prose(claim.why)}</dd>"
        for claim in section.claims
    )
    return f"""<h2 id="{experiment.name}">{escape(experiment.title)}</h2>
<p class="soft">Reproduces {_prose(experiment.reproduces)}. {_prose(section.setting)}</p>
{notes}
{_picture(experiment, results)}
<dl>
{claims}
</dl>"""


def _picture(experiment: Experiment, results: Path) -> str:
    path = results / f"{experiment.name}.svg"
    if not path.exists():
        return ""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<figure><img alt="{escape(experiment.title)}" src="data:image/svg+xml;base64,{data}"></figure>'


def _prose(text: str) -> str:
    """Text with `code` marked as such."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
