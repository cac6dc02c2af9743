"""Plans of the accepted vectors: several settings of every protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from conformance_vectors.plans import View, parameters_of, terms
from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.domains.labels import Domain
from sunzi.plan import Plan


@dataclass(frozen=True)
class Case:
    """A valid plan and the values to report under it."""

    name: str
    protocol: str
    domain: Domain
    epsilon: str
    designs: Sequence[Design] = ()
    values: Sequence[Any] = ()
    batch_rows: int = 8
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lifetime: Fraction | None = None
    views: Sequence[View] = ()
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        parameters = parameters_of(self.protocol, Fraction(self.epsilon), self.designs, self.views, self.domain.sizes)
        plan = Plan.from_terms(terms(self.protocol, self.domain, self.epsilon, parameters))
        # A plan names its label file; the domain has its labels.
        object.__setattr__(self, "plan", Plan(plan.protocol, self.domain, self.groups, self.lifetime))

    def value(self, number: int) -> Any:
        """The value of report ``number``: the given values in turn, or values spread over the domain."""
        if self.values:
            return self.values[number % len(self.values)]
        size = self.domain.size
        return (0, size - 1, size // 2, 1, size // 3)[number % 5]


# Composed and decomposed letters are different labels; names that JavaScript or Python objects have are ordinary
# labels.
AWKWARD_LABELS = [
    "Öl",
    "",
    "日本 🏯",
    'quote " backslash \\ slash /',
    "line\nbreak\ttab\u0001\u007f\u2028",
    "\u00e9",
    "e\u0301",
    "__proto__",
    "other",
]


# Attributes and values of the largest lengths, and names that JavaScript objects have.
GROUPS = {
    "release": ["124", "125.0-beta+2", "x" * 64],
    "country": ["FR", "DE"],
    "constructor": ["Z"],
    "a" * 32: ["a_b"],
}


def good_cases() -> Iterator[Case]:
    """Plans of every protocol."""
    yield from grr_cases()
    yield from ss_cases()
    yield from ss_compact_cases()
    yield from pgr_cases()
    yield from unary_cases()
    yield from mss_cases()
    yield from mss_compact_cases()


def grr_cases() -> Iterator[Case]:
    """Randomised response, which also covers domains with labels."""
    yield Case("grr_k2", "grr", Domain(2), "1", [Singletons(2)])
    yield Case("grr_k3_third", "grr", Domain(3), "1/3", [Singletons(3)])
    yield Case("grr_k5", "grr", Domain(5), "1", [Singletons(5)])
    yield Case("grr_groups", "grr", Domain(2), "1", [Singletons(2)], batch_rows=0, groups=GROUPS)
    yield Case("grr_lifetime", "grr", Domain(2), "1/2", [Singletons(2)], batch_rows=0, lifetime=Fraction(7, 2))
    yield Case("grr_more_points_than_values", "grr", Domain(6), "3/2", [Singletons(11)])
    yield Case("grr_k1000_largest_epsilon", "grr", Domain(1000), "32", [Singletons(1000)])
    yield Case("grr_tiny_epsilon", "grr", Domain(3), "1/1000000000000000", [Singletons(3)])
    yield Case("grr_largest", "grr", Domain(1 << 30), "20", [Singletons(1 << 31)])
    awkward = Domain(AWKWARD_LABELS, other="other")
    values = [*AWKWARD_LABELS, "unheard of", "öl", "constructor"]
    yield Case("grr_labels_other", "grr", awkward, "2", [Singletons(9)], values)
    yield Case("grr_labels", "grr", Domain(["yes", "no"]), "1/2", [Singletons(2)], ["yes", "no"])
    filed = Domain(["red", "green", "blue", "ünknown"], other="ünknown", separate_labels=True)
    yield Case("grr_label_file", "grr", filed, "1", [Singletons(4)], ["red", "blue", "mauve", "ünknown"])


def ss_cases() -> Iterator[Case]:
    """Subsets whose words fill bytes to any extent, nearly none and nearly all points, and bitmaps."""
    yield Case("ss_k2", "ss", Domain(2), "1", [Subsets(2, 1)])
    yield Case("ss_k3_two_of_three", "ss", Domain(3), "1/3", [Subsets(3, 2)])
    yield Case("ss_k10", "ss", Domain(10), "1", [Subsets(10, 3)])
    yield Case("ss_singletons", "ss", Domain(40), "5", [Singletons(40)])
    yield Case("ss_more_points_than_values", "ss", Domain(9), "1", [Subsets(12, 3)])
    yield Case("ss_k64", "ss", Domain(64), "1", [Subsets(64, 17)], batch_rows=2)
    yield Case("ss_k65", "ss", Domain(65), "1", [Subsets(65, 17)], batch_rows=2)
    yield Case("ss_k131", "ss", Domain(131), "3/2", [Subsets(131, 24)], batch_rows=2)
    yield Case("ss_k300", "ss", Domain(300), "2", [Subsets(300, 30)], batch_rows=1)
    yield Case("ss_k70_nearly_all", "ss", Domain(70), "1/10", [Subsets(70, 67)], batch_rows=0)
    yield Case("ss_k256_tail_of_9_bits", "ss", Domain(256), "5", [Subsets(256, 1)])
    yield Case("ss_k1000_few", "ss", Domain(1000), "5", [Subsets(1000, 7)], batch_rows=6)
    yield Case("ss_bitmap_k20", "ss", Domain(20), "1", [Subsets(20, 5, "bitmap")])
    yield Case("ss_bitmap_k70", "ss", Domain(70), "2", [Subsets(70, 8, "bitmap")], batch_rows=5)


def ss_compact_cases() -> Iterator[Case]:
    """Cyclotomic designs: one class, unions in any order, with zero, several primitive roots."""
    yield Case("ss_compact_k2", "ss-compact", Domain(2), "1", [Cyclotomic(2, 1)])
    yield Case("ss_compact_k3", "ss-compact", Domain(3), "1/3", [Cyclotomic(3, 2)])
    yield Case("ss_compact_k6_of_7", "ss-compact", Domain(6), "1", [Cyclotomic(7, 3)])
    yield Case("ss_compact_with_zero", "ss-compact", Domain(13), "1", [Cyclotomic(13, 4, (0,), True)])
    yield Case("ss_compact_union", "ss-compact", Domain(31), "1/2", [Cyclotomic(31, 6, (0, 2))])
    union = Cyclotomic(61, 10, (7, 0, 3), True, generator=17)
    yield Case("ss_compact_union_out_of_order", "ss-compact", Domain(60), "4/5", [union])
    yield Case("ss_compact_all_classes", "ss-compact", Domain(11), "1", [Cyclotomic(11, 2, (0, 1))])
    yield Case("ss_compact_k100_of_101", "ss-compact", Domain(100), "1", [Cyclotomic(101, 4)])
    yield Case("ss_compact_k151", "ss-compact", Domain(151), "8/5", [Cyclotomic(151, 6)])
    yield Case("ss_compact_k1000003", "ss-compact", Domain(1_000_003), "8/5", [Cyclotomic(1_000_003, 6)])
    yield Case("ss_compact_singletons", "ss-compact", Domain(12), "6", [Singletons(12)])


def pgr_cases() -> Iterator[Case]:
    """Projective geometries over prime fields and extension fields, with more than one polynomial each."""
    yield Case("pgr_order2_k5_of_7", "pgr", Domain(5), "1/2", [Projective(2, 3)])
    yield Case("pgr_order2_k1000", "pgr", Domain(1000), "1/10", [Projective(2, 10)])
    yield Case("pgr_order3_k13", "pgr", Domain(13), "1", [Projective(3, 3)])
    yield Case("pgr_order4_k21", "pgr", Domain(21), "1", [Projective(4, 3, (1, 1, 1))])
    yield Case("pgr_order5_k150", "pgr", Domain(150), "3/2", [Projective(5, 4)])
    yield Case("pgr_order8_k73", "pgr", Domain(73), "2", [Projective(8, 3, (1, 1, 0, 1))])
    yield Case("pgr_order8_other_polynomial", "pgr", Domain(500), "2", [Projective(8, 4, (1, 0, 1, 1))])
    yield Case("pgr_order9_k91", "pgr", Domain(91), "2", [Projective(9, 3, (1, 0, 1))])
    yield Case("pgr_order9_other_polynomial", "pgr", Domain(90), "2", [Projective(9, 3, (2, 1, 1))])
    yield Case("pgr_order16_line", "pgr", Domain(17), "3", [Projective(16, 2, (1, 1, 0, 0, 1))])
    yield Case("pgr_order27_k700", "pgr", Domain(700), "3", [Projective(27, 3, (1, 2, 0, 1))])
    yield Case("pgr_singletons", "pgr", Domain(3), "1", [Singletons(3)])


def unary_cases() -> Iterator[Case]:
    """One bit per value: part of a byte, whole bytes, more than a machine word."""
    for protocol in ("rappor", "oue"):
        for size, epsilon in ((2, "1"), (3, "1/3"), (8, "4"), (9, "1/2")):
            yield Case(f"{protocol}_k{size}", protocol, Domain(size), epsilon)
        yield Case(f"{protocol}_k57", protocol, Domain(57), "2", batch_rows=2)
        labels = Domain(["a", "b", "c", "?"], other="?")
        yield Case(f"{protocol}_labels_other", protocol, labels, "3", (), ["a", "c", "?", "z", "b"])


def mss_cases() -> Iterator[Case]:
    """Residues through subsets: rejected selectors, payloads of several widths, a single modulus."""
    mixed = [Singletons(3), Subsets(5, 1), Subsets(7, 2)]
    yield Case("mss_k10", "mss", Domain(10), "1", mixed)
    yield Case("mss_k2", "mss", Domain(2), "1/3", [Singletons(2)])
    yield Case("mss_k3", "mss", Domain(3), "1/3", [Singletons(3), Singletons(2)])
    yield Case("mss_one_modulus", "mss", Domain(11), "1", [Subsets(11, 3)])
    several = [Subsets(101, 30), Singletons(2), Subsets(67, 20), Subsets(13, 4), Subsets(5, 2)]
    yield Case("mss_k100_mixed_bits", "mss", Domain(100), "3/4", several, batch_rows=8)
    bitmap = [Subsets(17, 2, "bitmap"), Subsets(19, 2), Singletons(23)]
    yield Case("mss_bitmap_block", "mss", Domain(40), "2", bitmap)
    yield Case("mss_singletons", "mss", Domain(30), "6", [Singletons(11), Singletons(13), Singletons(17)])
    labels = Domain(["a", "b", "c", "d", "e", "f", "rest"], other="rest")
    yield Case("mss_labels_other", "mss", labels, "1", [Subsets(5, 1), Subsets(3, 1)], ["a", "g", "rest", "d", "f"])


def mss_compact_cases() -> Iterator[Case]:
    """Residues through cyclotomic blocks, with all messages numbered together."""
    yield Case("mss_compact_k8", "mss-compact", Domain(8), "1", [Cyclotomic(5, 2), Cyclotomic(7, 3)])
    yield Case("mss_compact_k2", "mss-compact", Domain(2), "1", [Cyclotomic(2, 1)])
    yield Case("mss_compact_k3", "mss-compact", Domain(3), "1/3", [Singletons(3)])
    three = [Cyclotomic(13, 4, (0,), True), Singletons(3), Cyclotomic(31, 6, (4, 1), False, generator=11)]
    yield Case("mss_compact_k40", "mss-compact", Domain(40), "1", three)
    five = [Cyclotomic(37, 4), Cyclotomic(101, 4), Cyclotomic(61, 10, (2, 0, 5)), Cyclotomic(29, 4), Cyclotomic(73, 4)]
    yield Case("mss_compact_k250", "mss-compact", Domain(250), "1", five, batch_rows=16)
    yield Case(
        "mss_compact_singletons", "mss-compact", Domain(30), "6", [Singletons(11), Singletons(13), Singletons(17)]
    )
