"""The committed report and pictures match the committed tables."""

import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.collecting import EFFICIENT, PAPERS
from reproduction.report import write_report
from reproduction.table import Table

from reproduction import catalogue, claims, runner

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "reproduction"
RESULTS = COMMITTED / "results"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
PINNED = re.search(r"^matplotlib==(\S+)", (ROOT / "requirements" / "demo.txt").read_text(), re.MULTILINE)[1]


def test_the_report_is_that_of_the_tables(tmp_path):
    (tmp_path / "results").symlink_to(RESULTS)
    write_report([catalogue.find(each) for each in catalogue.NAMES], tmp_path)
    for name in ("REPORT.md", "report.html"):
        assert (tmp_path / name).read_bytes() == (COMMITTED / name).read_bytes(), name


def parts_of(path):
    """The text of a picture between its numbers, and the numbers."""
    text = path.read_text()
    return NUMBER.split(text), np.array([float(number) for number in NUMBER.findall(text)])


@pytest.mark.skipif(mpl.__version__ != PINNED, reason=f"pictures were drawn by Matplotlib {PINNED}")
@pytest.mark.parametrize("name", catalogue.NAMES)
def test_pictures_are_those_of_the_tables(tmp_path, name):
    """Up to the last digit of a coordinate, which other processors may round differently."""
    (tmp_path / f"{name}.csv").symlink_to(RESULTS / f"{name}.csv")
    runner.draw([catalogue.find(name)], tmp_path)
    (text, numbers), (committed_text, committed_numbers) = (
        parts_of(folder / f"{name}.svg") for folder in (tmp_path, RESULTS)
    )
    assert text == committed_text
    np.testing.assert_allclose(numbers, committed_numbers, atol=0.02)
    drawn, committed = ((folder / f"{name}.pdf").stat().st_size for folder in (tmp_path, RESULTS))
    assert drawn == pytest.approx(committed, rel=0.01)


def test_every_claim_has_evidence_and_every_table_is_full():
    found = set()
    for name in catalogue.NAMES:
        table = Table.load(RESULTS / f"{name}.csv")
        assert table.distinct("scale") == ["full"]
        assert len(table.distinct("sunzi")) == 1
        found |= {piece.claim for piece in catalogue.find(name).evidence(table)}
    declared = [value for value in vars(claims).values() if isinstance(value, claims.Claim)]
    assert found == set(declared)
    assert len({claim.words for claim in declared}) == len(declared)
    assert f"{len(declared)} claims" in (COMMITTED / "REPORT.md").read_text()


def test_the_tables_hold_the_trials_that_were_promised():
    """300 per point as in the paper; on the largest domain 100 where subsets are large, and for other protocols."""
    for name in ("mse", "other-sizes", "analytical-mse", "error-cdf", "dra", "geometry", "comparison"):
        for row in Table.load(RESULTS / f"{name}.csv"):
            if row.get("method") == EFFICIENT:
                assert row["trials"] in (20, 30, 60)
                continue
            slow = row.get("domain_size") == 22_000
            assert row["trials"] >= (100 if slow else 300)
    large = Table.load(RESULTS / "mse.csv").where(domain_size=22_000, method=PAPERS)
    fewer = {(row["method"], row["epsilon"]) for row in large if row["trials"] != 300}
    assert fewer == {("ss", 0.5), ("ss", 1.0)} | {("mss", epsilon) for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5)}
    report = (COMMITTED / "REPORT.md").read_text()
    assert "fewer at some: 100 for RAPPOR at k = 22,000" in " ".join(report.split())
    lengths = Table.load(RESULTS / "lengths.csv")
    assert lengths.where(length=9).distinct("trials") == [200]
