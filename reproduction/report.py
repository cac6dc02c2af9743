"""The report: every claim of the paper, what was measured, and whether it holds, as Markdown and as one
self-contained web page.
"""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from sunzi.atomic_files import write_atomically

from .claims import Claim, Finding, Verdict
from .experiment import Evidence, Experiment
from .table import Table

_MARKS: dict[Verdict, str] = {"holds": "✔", "in part": "◐", "does not hold": "✘"}
_COUNTED: dict[Verdict, str] = {
    "holds": "hold",
    "in part": "hold in part",
    "does not hold": "do not hold",
    "–": "about settings that it does not show",
}
_TITLE = "Reproduction report"
_CLAIMS = "All claims"
_PAPER = "“Private Frequency Estimation Via Residue Number Systems” (Arcolezi, AAAI 2026)"


@dataclass(frozen=True)
class _Section:
    """One experiment that has results."""

    experiment: Experiment
    table: Table
    evidence: Sequence[Evidence]
    notes: Sequence[str]

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.name

    @property
    def setting(self) -> str:
        """How much was run, and by which versions."""
        scale, seed, version = (
            ", ".join(str(value) for value in self.table.distinct(name)) for name in ("scale", "seed", "sunzi")
        )
        trials = self.table.distinct("trials")
        runs = f", {_span(trials)} trials per point" if trials else ""
        return f"Scale {scale}, seed {seed}, sunzi {version}, {len(self.table)} rows{runs}."


@dataclass(frozen=True)
class _Judgement:
    """One claim, and the findings of all experiments about it, by name."""

    claim: Claim
    evidence: dict[str, Evidence]

    @property
    def verdict(self) -> Verdict:
        """The verdict in the paper's own setting."""
        return self.claim.verdict([piece.finding for piece in self.evidence.values() if piece.finding])

    @property
    def verdict_beyond(self) -> Verdict:
        """The verdict in the settings that we add."""
        return self.claim.verdict([piece.beyond_finding for piece in self.evidence.values() if piece.beyond_finding])

    def others(self, name: str) -> list[str]:
        """The other experiments about it."""
        return [other for other in self.evidence if other != name]


@dataclass(frozen=True)
class _Report:
    """All sections, and one verdict per claim in order of appearance."""

    sections: Sequence[_Section]
    judgements: dict[Claim, _Judgement]

    @classmethod
    def of(cls, sections: Sequence[_Section]) -> _Report:
        """Gather the evidence."""
        judgements: dict[Claim, _Judgement] = {}
        for section in sections:
            for piece in section.evidence:
                judgements.setdefault(piece.claim, _Judgement(piece.claim, {})).evidence[section.name] = piece
        return cls(sections, judgements)


def _span(numbers: Sequence[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def write_report(experiments: Sequence[Experiment], root: Path) -> None:
    """REPORT.md and report.html from all results in ROOT/results."""
    sections = [_section(experiment, root / "results" / f"{experiment.name}.csv") for experiment in experiments]
    report = _Report.of([section for section in sections if section is not None])
    write_atomically(root / "REPORT.md", _markdown(report).encode())
    write_atomically(root / "report.html", _page(report, root / "results").encode())


def _section(experiment: Experiment, path: Path) -> _Section | None:
    if not path.exists():
        return None
    table = Table.load(path)
    return _Section(experiment, table, experiment.evidence(table), experiment.notes(table))


def _introduction(report: _Report) -> list[str]:
    verdicts = [judgement.verdict for judgement in report.judgements.values()]
    counts = ", ".join(f"{verdicts.count(name)} {words}" for name, words in _COUNTED.items() if name in verdicts)
    return [
        f"Every claim that {_PAPER} makes about experiments, measured again: {len(verdicts)} claims; in the paper's "
        f"own setting {counts}.",
        "Each claim has two verdicts, each based on all experiments that test it: the first in the setting in which "
        "the paper makes the claim (its domains, users, populations, protocols, attacker and decoder), the second "
        "beyond it, in settings that we add. A claim holds if all evidence supports it, does not hold if all evidence "
        "contradicts it (one counter-example is enough for a theorem), and otherwise holds in part. A dash means that "
        "nothing was judged there.",
        "`sunzi reproduce` generates this report, its tables and its pictures. A trial is one simulated collection "
        "with new users, unless a section says otherwise. Standard errors are those of the mean over trials; bars in "
        "pictures show two standard errors.",
    ]


def _markdown(report: _Report) -> str:
    lines = [f"# {_TITLE}", "", *(line for text in _introduction(report) for line in (_wrapped(text), ""))]
    lines += ["| in the paper's setting | beyond it | claim of the paper | evidence |", "|---|---|---|---|"]
    for judgement in report.judgements.values():
        pieces = [
            f"[{name}](#{name}){_finding(judgement, finding)}: {text}"
            for name, finding, text in _texts(judgement, beyond=False)
        ]
        further = [f"beyond it, [{name}](#{name}): {text}" for name, _, text in _texts(judgement, beyond=True)]
        claim = f"{judgement.claim.words} ({judgement.claim.where})"
        cells = [_marked(judgement.verdict), _marked(judgement.verdict_beyond), claim, "<br>".join(pieces + further)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for section in report.sections:
        lines += ["", *_markdown_section(section, report)]
    return "\n".join(lines) + "\n"


def _texts(judgement: _Judgement, *, beyond: bool) -> list[tuple[str, Finding | None, str]]:
    """Experiment, finding and text of all evidence, in the paper's setting or beyond it."""
    found = [
        (name, piece.beyond_finding, piece.beyond) if beyond else (name, piece.finding, piece.measured)
        for name, piece in judgement.evidence.items()
    ]
    return [(name, finding, text) for name, finding, text in found if text]


def _finding(judgement: _Judgement, finding: Finding | None) -> str:
    """The finding of one piece of evidence, if there are several."""
    return f" ({finding})" if finding and len(_texts(judgement, beyond=False)) > 1 else ""


def _marked(verdict: Verdict) -> str:
    return f"{_MARKS[verdict]} {verdict}" if verdict in _MARKS else verdict


def _markdown_section(section: _Section, report: _Report) -> list[str]:
    experiment = section.experiment
    opening = _wrapped(f"**{experiment.title}.** Reproduces {experiment.reproduces}.")
    lines = [f"## {experiment.name}", "", opening, ""]
    for note in section.notes:
        lines += [_wrapped(note), ""]
    lines += [f"![{experiment.title}](results/{experiment.name}.svg)", ""]
    files = f"[Table](results/{experiment.name}.csv), [picture for print](results/{experiment.name}.pdf)"
    lines += [_wrapped(f"{section.setting} {files}."), ""]
    for piece in section.evidence:
        judgement = report.judgements[piece.claim]
        verdict = f"{_marked(judgement.verdict)}, beyond it {_marked(judgement.verdict_beyond)}"
        lines.append(_wrapped(f"**{verdict}**: “{piece.claim.words}” ({piece.claim.where})", "- "))
        others = ", ".join(f"[{name}](#{name})" for name in judgement.others(section.name))
        lines += [_wrapped(text, "  - ") for text in _details(piece, others)]
    return lines


def _details(piece: Evidence, others: str) -> list[str]:
    """The lines of one piece of evidence: the paper's setting first, ours second."""
    return [
        f"the paper's setting: {piece.claim.setting}",
        *([f"measured there{_shown(piece.finding)}: {piece.measured}"] if piece.measured else []),
        *([f"beyond it{_shown(piece.beyond_finding)}: {piece.beyond}"] if piece.beyond else []),
        f"why: {piece.why}",
        *([f"see also {others}"] if others else []),
    ]


def _shown(finding: Finding | None) -> str:
    return f" ({finding})" if finding else ""


def _wrapped(text: str, bullet: str = "") -> str:
    """A paragraph or list item, wrapped so that no line starts like a list item, a heading or a quotation."""
    joined = re.sub(r" (?=(?:[-+*>]|#+|\d+[.)]) )", "\0", text)
    lines = textwrap.wrap(
        joined,
        120,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\0", " ")


_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #5b6672; --line: #d9dfe5; --paper: #fff; --holds: #00664b;
  --part: #7a5b00; --fails: #a34700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa5b1; --line: #333c45; --paper: #14181c;
  --holds: #4fc9a4; --part: #e0b84c; --fails: #f0955a; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 3rem 0 .25rem; scroll-margin-top: 1rem; }
p, dd { max-width: 50rem; } p { margin: .5rem 0; }
a { color: inherit; }
code { font-size: .92em; }
.soft { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; margin: 1.5rem 0; }
table { border-collapse: collapse; font-size: .92rem; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: .35rem .7rem .35rem 0; vertical-align: top; }
td { border-top: 1px solid var(--line); } td p { margin: 0 0 .35rem; } td:nth-child(3) { width: 32%; }
td .soft { display: block; }
@media (max-width: 44rem) { table, tbody, tr, td { display: block; } th { display: none; }
  td:nth-child(3) { width: auto; } td + td { border-top: 0; padding-top: 0; }
  td:nth-child(1)::before { content: "in the paper's setting: "; } td:nth-child(2)::before { content: "beyond it: "; } }
nav { margin: 1.5rem 0; } nav h2 { margin-top: 0; }
nav ol { columns: 2 22rem; margin: .5rem 0; padding-left: 1.5rem; } nav li { break-inside: avoid; padding: .1rem 0; }
.verdict { white-space: nowrap; font-weight: 600; }
.holds { color: var(--holds); } .part { color: var(--part); } .fails { color: var(--fails); }
figure { margin: 1rem 0; padding: .75rem; background: #fff; border: 1px solid var(--line); border-radius: 6px; }
img { display: block; width: 100%; height: auto; }
@media (max-width: 44rem) { figure { padding: .25rem; margin: 1rem -.75rem; } }
dl { margin: 1rem 0; } dt { margin-top: 1rem; max-width: 50rem; } dd { margin: .25rem 0 0 1.5rem; }
"""
_CLASSES: dict[Verdict, str] = {"holds": "holds", "in part": "part", "does not hold": "fails", "–": "soft"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def _page(report: _Report, results: Path) -> str:
    introduction = "\n".join(f"<p>{_prose(text)}</p>" for text in _introduction(report))
    body = "\n".join(_page_section(section, report, results) for section in report.sections)
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
{_contents(report)}
<h2 id="claims">{_CLAIMS}</h2>
{_overview(report)}
{body}
</body>
</html>
"""


def _contents(report: _Report) -> str:
    """The table of contents."""
    places = [("claims", _CLAIMS), *((section.name, section.experiment.title) for section in report.sections)]
    items = "\n".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in places)
    return f'<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>\n<ol>\n{items}\n</ol></nav>'


def _overview(report: _Report) -> str:
    rows = [
        f"<tr><td>{_verdict(judgement.verdict)}</td><td>{_verdict(judgement.verdict_beyond)}</td>"
        f"<td>{_prose(judgement.claim.words)} {_where(judgement.claim)}</td><td>{_pieces(judgement)}</td></tr>"
        for judgement in report.judgements.values()
    ]
    heads = "".join(
        f"<th>{name}</th>" for name in ("in the paper's setting", "beyond it", "claim of the paper", "evidence")
    )
    return f'<div class="scroll"><table>\n<tr>{heads}</tr>\n' + "\n".join(rows) + "\n</table></div>"


def _pieces(judgement: _Judgement) -> str:
    measured = [
        f'<p><a href="#{name}">{name}</a>{_finding(judgement, finding)}: {_prose(text)}</p>'
        for name, finding, text in _texts(judgement, beyond=False)
    ]
    beyond = [
        f'<p>Beyond it, <a href="#{name}">{name}</a>: {_prose(text)}</p>'
        for name, _, text in _texts(judgement, beyond=True)
    ]
    return "".join(measured + beyond)


def _verdict(verdict: Verdict) -> str:
    return f'<span class="verdict {_CLASSES[verdict]}">{_marked(verdict)}</span>'


def _where(claim: Claim) -> str:
    return f"<span class=soft>({_prose(claim.where)})</span>"


def _page_section(section: _Section, report: _Report, results: Path) -> str:
    experiment = section.experiment
    notes = "\n".join(f"<p>{_prose(note)}</p>" for note in section.notes)
    claims = "\n".join(
        _page_evidence(section.name, piece, report.judgements[piece.claim]) for piece in section.evidence
    )
    return f"""<h2 id="{experiment.name}">{escape(experiment.title)}</h2>
<p class="soft">Reproduces {_prose(experiment.reproduces)}. {_prose(section.setting)}
<a href="#contents">Contents</a></p>
{notes}
{_picture(experiment, results)}
<dl>
{claims}
</dl>"""


def _page_evidence(name: str, piece: Evidence, judgement: _Judgement) -> str:
    verdicts = f"{_verdict(judgement.verdict)}, beyond it {_verdict(judgement.verdict_beyond)}"
    lines = [f"<dd>{_prose(text)}</dd>" for text in _details(piece, "")]
    others = ", ".join(f'<a href="#{other}">{other}</a>' for other in judgement.others(name))
    if others:
        lines.append(f"<dd>see also {others}</dd>")
    return f"<dt>{verdicts}: “{_prose(piece.claim.words)}” {_where(piece.claim)}</dt>\n" + "\n".join(lines)


def _picture(experiment: Experiment, results: Path) -> str:
    """The picture; on a narrow screen the one whose panels are stacked."""
    if not (results / f"{experiment.name}.svg").exists():
        return ""
    wide, narrow = (
        "data:image/svg+xml;base64," + base64.b64encode((results / f"{experiment.name}{suffix}").read_bytes()).decode()
        for suffix in (".svg", ".narrow.svg")
    )
    image = f'<img alt="{escape(experiment.title)}" src="{wide}">'
    return f'<figure><picture><source media="(max-width: 44rem)" srcset="{narrow}">{image}</picture></figure>'


def _prose(text: str) -> str:
    """Text with `code` marked as such."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
