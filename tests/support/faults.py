"""Faults of clients, and the audit checks that must catch each of them. The audit compares the faulty client with the
correct plan.
"""

from fractions import Fraction

import numpy as np
from planting import (
    Fault,
    Replaced,
    answer,
    change,
    client,
    design_respond,
    randomize,
    respond,
    responses,
    subclass,
    truth_of,
    unary,
)
from small_records import RECORD_PLANS

from sunzi.batch_client import BatchClient
from sunzi.client.thresholds import symmetric_unary_thresholds, truth_threshold
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.domains.labels import Domain
from sunzi.numerics.randomness import ReproducibleSource, uniform_below, word_array
from sunzi.plan import Plan, make_plan
from sunzi.protocols.block_protocols import CompactSubsetSelection

# --- words and thresholds


def modulo_bias(response, words, values, source):
    return response.design.respond(values, truth_of(response, words), words[:, 1:] % response.design.draw_bounds)


def no_rejection(response, words, values, source):
    products = words[:, 1:].astype(object) * response.design.draw_bounds.astype(object)
    variates = (products >> source.word_bits).astype(np.uint64)
    return response.design.respond(values, truth_of(response, words), variates)


def at_most_the_threshold(response, words, values, source):
    return answer(response, words[:, 0] <= np.uint64(response.threshold), words, values, source)


def truth_in_floating_point(response, words, values, source):
    rate = response.threshold / 2.0**response.word_bits
    return answer(response, words[:, 0] / 2.0**response.word_bits < rate, words, values, source)


def half_of_each_word(response, words, values, source):
    half = np.uint64(source.word_bits // 2)
    truth = (words[:, 0] >> half) < np.uint64(response.threshold >> int(half))
    return answer(response, truth, words, values, source)


def truncated_picks(response, words, values, source):
    cut = np.uint64(max(source.word_bits - 4, 1))
    rounded = np.column_stack([words[:, :1], words[:, 1:] >> cut << cut | np.uint64((1 << int(cut)) - 1)])
    return answer(response, truth_of(response, words), rounded, values, source)


def same_word_for_truth_and_pick(response, words, values, source):
    return answer(response, truth_of(response, words), np.repeat(words[:, :1], words.shape[1], axis=1), values, source)


def picks_one_short(response, words, values, source):
    bounds = np.maximum(response.design.draw_bounds - np.uint64(1), np.uint64(1))
    return response.design.respond(values, truth_of(response, words), uniform_below(words[:, 1:], bounds, source))


def threshold(wanted):
    def plant(plan):
        for response in responses(plan):
            change(response, threshold=wanted(response))

    return plant


def for_more_epsilon(response):
    return truth_threshold(response.design.block_size, response.design.points, response.epsilon * Fraction(51, 50))


def for_twice_the_block(response):
    return truth_threshold(2 * response.design.block_size, response.design.points, response.epsilon)


# --- branches


def swapped_branches(response, words, values, source):
    return answer(response, ~truth_of(response, words), words, values, source)


def never_lying(response, words, values, source):
    return answer(response, np.ones(len(values), dtype=bool), words, values, source)


def sometimes_always_the_value(response, words, values, source):
    """One lie in eight is replaced by the truth."""
    return answer(response, truth_of(response, words) | (words[:, 0] % np.uint64(8) == 0), words, values, source)


def one_value_in_clear(response, words, values, source):
    return answer(response, truth_of(response, words) | (values == 0), words, values, source)


def one_truth_word_for_all(response, words, values, source):
    shared = np.column_stack([np.repeat(words[:1, :1], len(words), axis=0), words[:, 1:]])
    return answer(response, truth_of(response, shared), shared, values, source)


# --- blocks


def lies_hold_the_next_point(shipped, design, values, truth, variates):
    """A lie is the block with the next point instead of a random block without the value."""
    honest = shipped(design, values, truth, variates)
    wrong = shipped(design, (values + 1) % design.points, np.ones_like(truth), variates)
    return np.where(truth if honest.ndim == 1 else truth[:, None], honest, wrong)


def lie_may_be_the_value(shipped, design, values, truth, variates):
    """Randomised response that skips the value one place too late."""
    other = variates[:, 0].astype(np.int64)
    other += other > values
    return np.where(truth, values, other)


def added_shift(shipped, design, values, truth, variates):
    """x + d instead of x − d."""
    scale, shift = np.divmod(shipped(design, values, truth, variates), design.points)
    return scale * design.points + (2 * values - shift) % design.points


def replaces_the_largest(shipped, design, values, truth, variates):
    """The value replaces the largest point instead of a uniformly random one."""
    chosen = shipped(design, values, np.zeros_like(truth), variates)
    rows = np.arange(len(chosen))
    largest = chosen.argmax(axis=1)
    chosen[rows, largest] = np.where(truth, values, chosen[rows, largest])
    return chosen


def replaces_the_first(shipped, design, values, truth, variates):
    """The value replaces the first point: equally private, but not what the format specifies."""
    chosen = shipped(design, values, np.zeros_like(truth), variates)
    chosen[:, 0] = np.where(truth, values, chosen[:, 0])
    return chosen


def half_of_the_lies(shipped, design, values, truth, variates):
    picks = variates.copy()
    picks[:, 1] //= np.uint64(2)
    return shipped(design, values, truth, picks)


def message_tells_the_branch(shipped, design, values, truth, variates):
    """Where two messages name the same block, the truth sends one and a lie the other."""
    scale, shift = np.divmod(shipped(design, values, truth, variates), design.points)
    return (scale % 2 + np.where(truth, 0, 2)) * design.points + shift


def repeated_blocks():
    protocol = CompactSubsetSelection(5, BlockResponse(Cyclotomic(5, 4, (0, 2)), Fraction(1)))
    return Plan(protocol, Domain(5))


# --- residues


def favoured_selectors(shipped, protocol, values, source):
    return shipped(protocol, values, Replaced(source, lambda words: words >> np.uint64(1)))


def selector_of_the_value(shipped, protocol, values, source):
    number, scale = len(protocol.responses), 1 << source.word_bits
    chosen = [(2 * (value % number) + 1) * scale // (2 * number) for value in values.tolist()]
    return shipped(protocol, values, Replaced(source, lambda _: np.array(chosen, dtype=np.uint64)))


def residue_of_the_next_value(shipped, protocol, values, source):
    return shipped(protocol, (values + 1) % protocol.domain_size, source)


# --- bits


def compared(protocol, words, own):
    return np.where(own, words < np.uint64(protocol.true_threshold), words < np.uint64(protocol.false_threshold))


def own_bit_always_sent(protocol, words, own):
    return own | compared(protocol, words, own)


def one_word_for_all_bits(protocol, words, own):
    return compared(protocol, np.repeat(words[:, :1], words.shape[1], axis=1), own)


def last_bit_without_noise(protocol, words, own):
    bits = compared(protocol, words, own)
    bits[:, -1] = own[:, -1]
    return bits


def unary_thresholds(wanted):
    def plant(plan):
        true, false = wanted(plan.protocol)
        change(plan.protocol, true_threshold=true, false_threshold=false)

    return plant


# --- views and rounding


def views_equally_often(protocol, count, source):
    drawn = uniform_below(
        word_array(source, count).reshape(-1, 1), np.array([len(protocol.views)], dtype=np.uint64), source
    )
    return drawn[:, 0].astype(np.uint16)


def view_of_the_record(shipped, protocol, values, source):
    """Records with an odd number always answer the last view."""
    odd, last = values % 2 == 1, np.uint64((1 << source.word_bits) - 1)
    return shipped(protocol, values, Replaced(source, lambda words: np.where(odd, last, words)))


def always_down(protocol, values, source):
    word_array(source, values.size)
    return values * (protocol.grid_points - 1) // (protocol.domain_size - 1)


def protocol_methods(**methods):
    return lambda plan: subclass(plan.protocol, **methods)


# --- clients


def words_for_two_users(shipped, protocol, values, source):
    """Neighbours in a batch share their words."""
    number = protocol.response.words_per_report
    words = word_array(source, -(-values.size // 2) * number).reshape(-1, number)
    shared = np.repeat(words, 2, axis=0)[: values.size]
    return protocol.response._respond(shared, values, source)


class SeededClient(BatchClient):
    """Every client starts with the same seed."""

    def __init__(self, plan, *, seed=None, source=None, **options):
        super().__init__(plan, source=ReproducibleSource(7) if source is None else source, **options)


class LongerForOddValues(BatchClient):
    def report(self, value):
        return super().report(value) + b"\0" * (int(value) % 2)


class MarksItsValue(BatchClient):
    """The highest bit of the last byte, which is padding, reveals whether the value is odd."""

    def report(self, value):
        sent = super().report(value)
        return sent[:-1] + bytes([sent[-1] | 128 * (int(value) % 2)])


class SortsItsBatch(BatchClient):
    """Reports are sent in the order of their values."""

    def report_indices(self, indices):
        return super().report_indices(np.sort(indices))


class LosesOne(BatchClient):
    """The last report of a batch is not sent."""

    def report_indices(self, indices):
        return super().report_indices(indices[:-1])


class SpeaksForAnotherPlan(BatchClient):
    def report_indices(self, indices):
        other = make_plan(self.plan.protocol.name, self.plan.domain.size, self.plan.epsilon + 1)
        return other.client(source=self._source).report_indices(indices)


class RepeatsItself(BatchClient):
    """Users with the same value in a batch send the same report."""

    def report_indices(self, indices):
        protocol = self.plan.protocol
        distinct, places = np.unique(indices, return_inverse=True)
        messages = protocol.randomize(distinct, self._source)[places]
        from sunzi import wire

        return wire.encode_batch(protocol.report_layout, self.plan.digest, protocol.encode(messages))


def of(name, size, epsilon, **options):
    return lambda: make_plan(name, size, epsilon, **options)


GRR, SMALL_GRR = of("grr", 20, 1), of("grr", 7, 1)
COMPACT, SHORT = of("ss-compact", 100, 1), of("ss-compact", 13, 1, classes=4, points=13)
SUBSETS, PGR = of("ss", 12, 1), of("pgr", 13, 1, order=3)
MSS, COMPACT_MSS = of("mss", 20, 1, moduli=(3, 5, 7, 11)), of("mss-compact", 40, 1, moduli=(7, 13, 31))
RAPPOR, OUE = of("rappor", 6, 1), of("oue", 6, 1)
ORDERED, NUMBER, TABLES = ((lambda make=RECORD_PLANS[name]: make(3)) for name in ("ordered", "number", "tables"))


def fault(name, plan, plant, *caught_by, **rest):
    return Fault(name, plan, plant, frozenset(caught_by), **rest)


FAULTS = [
    fault("a report is lost", COMPACT, client(LosesOne), "readable"),
    fault("reports of another plan", GRR, client(SpeaksForAnotherPlan), "readable"),
    fault("integers by remainder", COMPACT, respond(modulo_bias), "words"),
    fault("integers by remainder, grr", SMALL_GRR, respond(modulo_bias), "words", "enumeration"),
    fault("no word is rejected", COMPACT, respond(no_rejection), "words", "enumeration"),
    fault("threshold one too large", COMPACT, threshold(lambda response: response.threshold + 1), "words"),
    fault("threshold one too small", MSS, threshold(lambda response: response.threshold - 1), "words"),
    fault("at most instead of below", SHORT, respond(at_most_the_threshold), "words", "enumeration"),
    fault("truth in floating point", COMPACT, respond(truth_in_floating_point), "words"),
    fault("half of each word", COMPACT, respond(half_of_each_word), "words"),
    fault("picks of four bits", COMPACT, respond(truncated_picks), "words", "support"),
    fault(
        "one word for truth and pick",
        SMALL_GRR,
        respond(same_word_for_truth_and_pick),
        "words",
        "enumeration",
        "support",
    ),
    fault("picks one short", GRR, respond(picks_one_short), "words", "enumeration", "support"),
    fault(
        "2 % more epsilon",
        of("ss-compact", 100, 3),
        threshold(for_more_epsilon),
        "epsilon",
        "words",
        proves=True,
        trials=1_000_000,
    ),
    fault(
        "2 % more epsilon, grr", of("grr", 10, 2), threshold(for_more_epsilon), "epsilon", proves=True, trials=1_000_000
    ),
    fault("threshold of a larger block", COMPACT, threshold(for_twice_the_block), "epsilon", "support", proves=True),
    fault("truth and lie swapped", GRR, respond(swapped_branches), "epsilon", "words", "support", proves=True),
    fault("never lying", COMPACT, respond(never_lying), "epsilon", "words", "enumeration", "support", proves=True),
    fault(
        "some lies tell the truth", PGR, respond(sometimes_always_the_value), "epsilon", "words", "support", proves=True
    ),
    fault("one value in clear", SHORT, respond(one_value_in_clear), "words", "enumeration", proves=True),
    fault(
        "one value in clear, audited pair",
        SHORT,
        respond(one_value_in_clear),
        "epsilon",
        proves=True,
        options={"pair": (0, 5)},
    ),
    fault("one truth word for a batch", COMPACT, respond(one_truth_word_for_all), "support"),
    fault("lies hold the next point", COMPACT, design_respond(lies_hold_the_next_point), "support", "enumeration"),
    fault("lies hold the next point, subsets", SUBSETS, design_respond(lies_hold_the_next_point), "support", "words"),
    fault(
        "a lie may be the value",
        GRR,
        design_respond(lie_may_be_the_value),
        "epsilon",
        "words",
        "enumeration",
        proves=True,
    ),
    fault(
        "shift added, not subtracted",
        of("ss-compact", 23, 1, classes=2, points=23),
        design_respond(added_shift),
        "support",
        "words",
        "enumeration",
    ),
    fault("the largest point gives way", SUBSETS, design_respond(replaces_the_largest), "support", "enumeration"),
    fault("the first point gives way", SUBSETS, design_respond(replaces_the_first), "words"),
    fault("half of the lies", PGR, design_respond(half_of_the_lies), "support", "words", "enumeration"),
    fault(
        "the message tells the branch",
        repeated_blocks,
        design_respond(message_tells_the_branch),
        "enumeration",
        "words",
        "freshness",
        proves=True,
    ),
    fault("some moduli favoured", MSS, randomize(favoured_selectors), "selectors", "words", "enumeration"),
    fault(
        "the value chooses its modulus",
        COMPACT_MSS,
        randomize(selector_of_the_value),
        "selectors",
        "words",
        "enumeration",
    ),
    fault(
        "residue of another value", COMPACT_MSS, randomize(residue_of_the_next_value), "words", "support", "enumeration"
    ),
    fault(
        "views equally often",
        ORDERED,
        protocol_methods(draw_selectors=views_equally_often),
        "selectors",
        "words",
        "enumeration",
    ),
    fault("the record chooses its view", TABLES, randomize(view_of_the_record), "selectors", "enumeration"),
    fault(
        "the node of the next bin",
        ORDERED,
        randomize(residue_of_the_next_value),
        "words",
        "support",
        "enumeration",
    ),
    fault("numbers are always rounded down", NUMBER, protocol_methods(round=always_down), "words", "enumeration"),
    fault("a number is sent in clear", NUMBER, respond(never_lying), "epsilon", "support", proves=True),
    fault(
        "own bit always sent",
        RAPPOR,
        unary(own_bit_always_sent),
        "epsilon",
        "words",
        "support",
        "enumeration",
        proves=True,
    ),
    fault("one word for all bits", OUE, unary(one_word_for_all_bits), "words", "support", "enumeration", "freshness"),
    fault(
        "the last bit without noise",
        RAPPOR,
        unary(last_bit_without_noise),
        "words",
        "enumeration",
        "support",
        proves=True,
    ),
    fault(
        "false bits one word short",
        OUE,
        unary_thresholds(lambda protocol: (protocol.true_threshold, protocol.false_threshold - 1)),
        "words",
    ),
    fault(
        "epsilon spent on every bit",
        RAPPOR,
        unary_thresholds(lambda protocol: symmetric_unary_thresholds(2 * protocol.epsilon)),
        "epsilon",
        "words",
        proves=True,
    ),
    fault("two users share their words", COMPACT, randomize(words_for_two_users), "freshness"),
    fault("users of one value share a report", COMPACT, client(RepeatsItself), "freshness"),
    fault("all clients start from one seed", COMPACT, client(SeededClient), "freshness"),
    fault("the length tells the value", COMPACT, client(LongerForOddValues), "words", "single reports"),
    fault("padding tells the value", COMPACT, client(MarksItsValue), "words", "single reports"),
    fault("a batch is sorted by value", COMPACT, client(SortsItsBatch), "support"),
]
