"""Every finding follows from its table: changing the numbers that a claim is about changes the finding.

Each case takes the committed table of an experiment, replaces some numbers, and expects another finding, in the paper's
own setting or beyond it.
"""

import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.collecting import LINEAR
from reproduction.table import Table

from reproduction import catalogue, claims

RESULTS = Path(__file__).resolve().parents[2] / "reproduction" / "results"


def times(factor):
    return lambda row, column: row[column] * factor


def to(value):
    return lambda row, column: value


def like(other, factor=1.0):
    return lambda row, column: row[other] * factor


@dataclass(frozen=True)
class Case:
    """The claim NAME of an experiment; rows and columns to replace; the finding afterwards."""

    experiment: str
    claim: str
    expected: str
    where: dict
    columns: dict = field(default_factory=dict)
    beyond: bool = False

    def __str__(self):
        return f"{self.experiment}-{self.claim}{'-beyond' if self.beyond else ''}"


MEAN = {"mean": times(3)}
CASES = [
    Case("mse", "WITHIN_LIMIT", "against", {"method": "mss"}, MEAN),
    Case("mse", "WITHIN_LIMIT", "in part", {"method": LINEAR}, MEAN, beyond=True),
    Case("mse", "MATCHES", "in part", {"method": "oue"}, MEAN),
    Case("mse", "MATCHES", "against", {"method": "rappor"}, {"mean": times(100)}, beyond=True),
    Case("mse", "GRR_WORST", "against", {"method": "grr"}, {"mean": times(1e-6)}),
    Case("mse", "GRR_WORST", "for", {"method": "rappor"}, {"mean": times(1e-3)}, beyond=True),
    Case("mse", "NEAR_OPTIMAL", "in part", {"method": "ss"}, MEAN),
    Case("mse", "SAME_TRENDS", "in part", {"method": "mss", "population": "spike"}, MEAN),
    Case("mse", "GRR_GAP", "against", {"method": "grr"}, MEAN),
    Case("error-cdf", "WITHIN_LIMIT", "against", {"method": "mss"}, {"q0.5": times(2)}),
    Case("error-cdf", "STEADY", "in part", {"method": "mss"}, {"q0.95": times(3)}),
    Case("error-cdf", "GRR_WORST", "against", {"method": "grr"}, {"q0": times(1e-6)}),
    Case("other-sizes", "OTHER_SETTINGS", "for", {"method": "mss"}, {"mean": times(0.1)}, beyond=True),
    Case("other-sizes", "DISTRIBUTION_FREE", "in part", {"method": "mss", "population": "spike"}, MEAN),
    Case("other-sizes", "DISTRIBUTION_FREE", "for", {}, {"mean": to(1.0)}, beyond=True),
    Case("other-sizes", "GRR_WORST", "for", {"method": "grr"}, {"mean": times(1e6)}, beyond=True),
    Case("analytical-mse", "ANALYTICAL_ERROR", "for", {"method": "mss"}, {"printed": like("mean")}),
    Case("analytical-mse", "ANALYTICAL_ERROR", "in part", {"method": "ss"}, {"predicted": times(2)}, beyond=True),
    Case("analytical-mse", "PRINTED_ERROR", "for", {"method": "mss"}, {"printed": like("mean")}),
    Case("moduli-per-trial", "WITHIN_LIMIT", "in part", {"kind": "drawn"}, {"mse_zipf": times(3)}),
    Case("moduli-per-trial", "KAPPA_KEPT", "against", {"kind": "drawn"}, {"kappa": to(11.0)}),
    Case("moduli-per-trial", "KAPPA_KEPT", "against", {"kind": "size"}, {"kappa": to(11.0)}, beyond=True),
    Case("moduli-per-trial", "ERROR_BOUND", "for", {"kind": "bad"}, {"ratio": to(1.0)}),
    Case("moduli-per-trial", "KAPPA_BOUND", "for", {}, {"kappa": to(1.0), "kappa_bound": to(2.0)}),
    Case("moduli-per-trial", "CONSERVATIVE", "against", {"kind": "drawn"}, {"l_theory": to(0.0)}),
    Case("moduli-per-trial", "ARBITRARY", "for", {"kind": "size"}, {"largest": to(1), "fallback": to(0)}),
    Case("moduli-per-trial", "LINEAR_SUM", "against", {}, {"sum_share": like("domain_size"), "length": to(9)}),
    Case("lengths", "MIDDLE_LENGTH", "for", {"length": 9}, {"error_share": to(0.1), "bits_share": to(0.1)}),
    Case("lengths", "NOT_MONOTONE", "against", {}, {"error_worse": to(0.0), "bits_worse": to(0.0)}),
    Case("lengths", "OPTIMISED", "against", {"length": "opt"}, {"measured_share": times(3)}),
    Case("lengths", "OTHER_CRITERIA", "against", {"length": "opt"}, {"bits_share": to(0.1), "attack_share": to(0.1)}),
    Case(
        "lengths",
        "SPECTRUM",
        "for",
        {"length": (3, 6, 9, 12, 15)},
        {
            "error_share": lambda row, column: 1 / row["length"],
            "bits_share": like("length"),
            "error_share_error": to(1e-6),
            "bits_share_error": to(1e-6),
        },
    ),
    Case("ridge", "UNBIASED", "against", {"multiple": 0.0}, {"top_bias": like("top_bias_error", 9)}),
    Case("ridge", "BIAS_LINEAR", "against", {"multiple": 16.0}, {"top_bias": times(10)}),
    Case("ridge", "BIAS_FALLS", "against", {"multiple": 1.0}, {"top_bias": like("epsilon"), "top_deviation": to(1.0)}),
    Case("ridge", "PRACTICALLY_UNBIASED", "against", {"users": 10_000}, {"top_deviation": to(1e-9)}),
    Case("ridge", "PRACTICALLY_UNBIASED", "for", {"users": 1000}, {"top_deviation": to(1e9)}, beyond=True),
    Case("bits", "FEWER_BITS", "against", {"part": "search"}, {"largest": to(1e9)}),
    Case("bits", "HALF_THE_BITS", "for", {"part": "fixed", "protocol": "ss"}, {"bits": times(2)}),
    Case("bits", "RESIDUE_BITS", "for", {"part": "search"}, {"residue_bits": like("bits")}),
    Case("bits", "TABLE_BITS", "for", {"part": "fixed", "protocol": "pgr"}, {"bits": to(1)}),
    Case("runtime", "SPEED_UP", "for", {"way": "pgr by programme"}, {"median": to(1e3)}),
    Case("runtime", "SPEED_UP", "for", {"way": "pgr"}, {"median": to(1e3)}, beyond=True),
    Case("runtime", "SLOW_GEOMETRY", "against", {"way": "pgr by programme", "epsilon": 2.0}, {"median": to(1e3)}),
    Case("runtime", "FEW_ITERATIONS", "against", {"k": 22_000}, {"iterations": to(1e6)}),
    Case("comparison", "TABLE_BITS", "for", {"protocol": "pgr"}, {"bits": like("bits_formula")}),
    Case("comparison", "TABLE_ERROR", "for", {"protocol": ("grr", "rappor")}, {"mse": like("mse_formula")}),
    Case("comparison", "TABLE_ERROR", "in part", {"protocol": "grr"}, {"mse_planned": times(2)}, beyond=True),
    Case("comparison", "ERROR_BOUND", "against", {"protocol": "mss"}, {"mse": times(100)}),
    Case("comparison", "TABLE_SERVER", "for", {"protocol": "mss"}, {"counting": to(1.0)}),
    Case("comparison", "TABLE_ATTACK", "in part", {"protocol": "mss"}, {"dra_formula": times(2)}),
    Case("comparison", "TABLE_ATTACK", "for", {"protocol": "pgr"}, {"dra_formula": like("dra_exact")}, beyond=True),
    Case("dra", "LOWEST_ATTACK", "for", {"protocol": "mss"}, {"mean": to(1e-9)}),
    Case("dra", "LOWEST_OF_ALL", "against", {"protocol": "ss"}, {"mean": to(1e-9)}),
    Case("dra", "LOWEST_OF_ALL", "for", {"protocol": "rappor"}, {"mean": to(1.0)}, beyond=True),
    Case("dra", "ANY_INPUT", "against", {"protocol": "mss", "population": "zipf:3"}, {"mean": times(2)}),
    Case("dra", "GRR_ATTACK", "for", {"protocol": "pgr"}, {"mean": to(0.0)}),
    Case("dra", "GRR_ATTACK", "against", {"protocol": "oue"}, {"uniform": to(1.0)}, beyond=True),
    Case("dra", "HIGHER_ATTACK", "against", {"protocol": "mss"}, {"mean": lambda row, _: 1e6 / row["k"] ** 2}),
    Case("dra", "TRUNCATED_GEOMETRY", "against", {"protocol": "pgr"}, {"mean": to(1e-6)}),
    Case("dra", "TRUNCATED_GEOMETRY", "for", {"protocol": "pgr"}, {"uniform": to(1.0)}, beyond=True),
    Case("analytical-dra", "SUBSETS_MATCH", "against", {"protocol": "ss"}, {"uniform": times(2)}),
    Case("analytical-dra", "UPPER_BOUND", "for", {"protocol": "mss"}, {"boxed": times(2)}),
    Case("analytical-dra", "TABLE_ATTACK", "for", {"protocol": "mss"}, {"uniform": like("mean")}, beyond=True),
    Case("geometry", "ALIGNED_GEOMETRY", "against", {"protocol": "pgr", "domain": "aligned"}, MEAN),
    Case("geometry", "ALIGNED_GEOMETRY", "against", {"protocol": "pgr"}, {"formula": times(3)}, beyond=True),
    Case("geometry", "TRUNCATED_GEOMETRY", "against", {"protocol": "pgr"}, {"mean": to(1e-6)}),
    Case("geometry", "TRUNCATED_GEOMETRY", "for", {"protocol": "pgr"}, {"others": to(1.0)}, beyond=True),
    Case("geometry", "LOWEST_ALIGNED", "for", {"protocol": "mss"}, {"mean": to(0.0)}),
    Case("geometry", "LOWEST_ALIGNED", "for", {"protocol": "mss"}, {"formula": to(0.0)}, beyond=True),
    Case("geometry", "TABLE_ATTACK", "against", {"protocol": "pgr"}, {"formula": times(1.01)}),
    Case("exact", "PRIVATE", "against", {"part": "privacy", "k": 6}, {"printed_private": to(0)}),
    Case("exact", "PRIVATE", "against", {"part": "privacy", "k": 6}, {"shipped_private": to(0)}, beyond=True),
    Case("exact", "SUBSET_SIZE", "for", {"part": "sizes"}, {"empty": to(0)}),
    Case("exact", "INTEGERS", "for", {"part": "arithmetic"}, {"server": to(1)}),
    Case("exact", "ONE_RESIDUE", "against", {"formula": "one residue"}, {"printed": times(1.01)}),
    Case("exact", "TRUNCATED_FORMULA", "against", {"part": "attack"}, {"printed": like("exact", 1.2)}),
    Case("exact", "TRUNCATED_FORMULA", "for", {"part": "small plane"}, {"printed": like("exact")}, beyond=True),
]


@cache
def committed(name):
    return Table.load(RESULTS / f"{name}.csv")


def findings(name, table):
    """Every finding by claim and part."""
    return {
        (piece.claim, beyond): found
        for piece in catalogue.find(name).evidence(table)
        for beyond, found in ((False, piece.finding), (True, piece.beyond_finding))
        if found is not None
    }


def changed(table, case):
    chosen = {id(row) for row in table.where(**case.where)}
    assert chosen
    return Table(
        row | {name: new(row, name) for name, new in case.columns.items() if row.get(name) is not None}
        if id(row) in chosen
        else row
        for row in table
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_other_numbers_give_another_finding(case):
    table = committed(case.experiment)
    key = getattr(claims, case.claim), case.beyond
    assert findings(case.experiment, table)[key] != case.expected
    assert findings(case.experiment, changed(table, case))[key] == case.expected


def test_every_finding_of_the_report_has_a_case():
    covered = {(case.experiment, getattr(claims, case.claim), case.beyond) for case in CASES}
    found = {(name, *key) for name in catalogue.NAMES for key in findings(name, committed(name))}
    assert {(name, claim.words, beyond) for name, claim, beyond in found - covered} == set()
    assert covered <= found
