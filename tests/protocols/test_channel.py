"""Every channel states exact probabilities, which are sums over its messages."""

from fractions import Fraction

import numpy as np
import pytest

from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
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
