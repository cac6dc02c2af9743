"""Every channel states exact probabilities, which are sums over its messages."""

from fractions import Fraction

import numpy as np
import pytest
from small_records import RECORD_PLANS

from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ScriptedSource
from sunzi.protocols.channel import FirstWord
from sunzi.protocols.unary import OptimalUnaryEncoding, Rappor
from sunzi.wire import EncodedReports

E = Fraction("2.71828182845904523536")  # rounded up
DESIGNS = [Singletons(7), Subsets(6, 2), Cyclotomic(13, 4), Projective(3, 3)]
CHANNELS = {
    **{design.kind: BlockResponse(design, Fraction(1)) for design in DESIGNS},
    "rappor": Rappor(4, Fraction(1)),
    "oue": OptimalUnaryEncoding(5, Fraction(1)),
}


@pytest.fixture(params=CHANNELS)
def channel(request):
    return CHANNELS[request.param]


def all_messages(channel):
    """In the order of their probabilities."""
    if channel.has_independent_bits:
        return channel.decode(EncodedReports.single(np.array(list(channel.payload_probabilities(0)), dtype=np.uint64)))
    return channel.design.every_message()


def test_probabilities_of_all_messages_sum_to_one(channel):
    for point in range(channel.points):
        assert sum(channel.payload_probabilities(point).values()) == 1


def test_the_likelihood_ratio_is_the_largest_of_all_messages_and_at_most_e_to_the_epsilon(channel):
    tables = [channel.payload_probabilities(point) for point in range(channel.points)]
    ratios = [one[payload] / other[payload] for one in tables for other in tables for payload in one]
    assert max(ratios) == channel.likelihood_ratio == 1 / min(ratios)
    assert E - Fraction(1, 10**18) < channel.likelihood_ratio < E


def test_figures_of_the_channel_are_sums_over_its_messages(channel):
    table = channel.support_table(all_messages(channel))
    sent, other = (np.array([float(p) for p in channel.payload_probabilities(point).values()]) for point in (0, 1))
    assert channel.collision_probability == pytest.approx(sent @ sent)
    assert channel.probabilities.true == pytest.approx(sent @ table[:, 0])
    assert channel.probabilities.false == pytest.approx(sent @ table[:, 1])
    only_own, only_other = sent @ (table[:, 0] & ~table[:, 1]), sent @ (table[:, 1] & ~table[:, 0])
    assert channel.discordance == pytest.approx((only_own, only_other))
    assert channel.other_rate(True) == pytest.approx(sent @ (table[:, 0] & table[:, 1]) / channel.probabilities.true)
    assert other @ table[:, 1] == pytest.approx(channel.probabilities.true)


def test_the_best_report_has_the_largest_gain(channel):
    """Over all messages: Σ_a values[a]·(1{a supported} − q)/Δ."""
    values = np.random.default_rng(1).normal(size=channel.points)
    table, rates = channel.support_table(all_messages(channel)), channel.probabilities
    gains = (table - rates.false) @ values / rates.gap
    if channel.has_independent_bits or not isinstance(channel.design, Cyclotomic | Projective):
        assert channel.largest_gain(values) == pytest.approx(gains.max())
    else:
        assert channel.largest_gain(values) >= gains.max() - 1e-9


def test_supported_points_are_those_that_are_counted(channel):
    messages = all_messages(channel)
    table = channel.support_table(messages)
    for point in range(channel.points):
        assert np.array_equal(channel.supports(messages, np.full(len(table), point)), table[:, point])
    assert np.array_equal(channel.point_counts(channel.count(messages)), table.sum(axis=0))


@pytest.mark.parametrize("first", [FirstWord(3), FirstWord(7), FirstWord(3, (1 << 31, 1 << 30, 1 << 30))])
@pytest.mark.parametrize("bits", [4, 64])
def test_first_words_at_their_edges(first, bits):
    """The words at the edges of an outcome give it, or are rejected, and those next to them do not."""
    for outcome in range(first.outcomes):
        low, after, last = first.edges(outcome, bits)
        assert first.outcome(first.middle(outcome, bits), bits) == outcome
        assert {first.outcome(word, bits) for word in (low, after, last)} <= {outcome, None}
        assert low == 0 or first.outcome(low - 1, bits) in (outcome - 1, None)
        assert last + 1 == 1 << bits or first.outcome(last + 1, bits) in (outcome + 1, None)


def test_first_words_are_as_frequent_as_their_shares():
    shares = 1 << 31, 3 << 29, 1 << 29
    drawn = [FirstWord(3, shares).outcome(word, 5) for word in range(32)]
    assert [drawn.count(outcome) for outcome in range(3)] == [16, 12, 4]
    uniform = [FirstWord(3).outcome(word, 5) for word in range(32)]
    assert [uniform.count(outcome) for outcome in (0, 1, 2, None)] == [10, 10, 10, 2]


@pytest.mark.parametrize("name", RECORD_PLANS)
def test_first_words_choose_as_clients_do(name):
    protocol = RECORD_PLANS[name](2).protocol
    generator = np.random.default_rng(1)
    for value, word in zip(
        generator.integers(0, protocol.domain_size, 50), generator.integers(0, 1 << 63, 50), strict=True
    ):
        source = ScriptedSource([2 * int(word), *range(5)])
        drawn = protocol.first_word.outcome(2 * int(word), 64)
        assert protocol.draw_cell(int(value), source) == protocol.place(drawn, int(value))
