"""Memoised reports: one value always gives the same bytes, in every collection, and reveals no more than one report."""

import hashlib
import hmac
import secrets
import struct

import numpy as np
import pytest

import sunzi
from sunzi.analysis import attack_growth
from sunzi.analysis.attack import fresh_rounds
from sunzi.device.memoising import KEY_BYTES, MemoisingClient
from sunzi.errors import DomainError, ParameterError, PrivacyError
from sunzi.numerics.randomness import DerivedSource

KEY = bytes(range(KEY_BYTES))
LABELS = ["Firefox", "Chrome", "Safari", "Edge"]


@pytest.mark.parametrize("protocol", sunzi.catalogue())
def test_equal_values_give_equal_bytes(protocol):
    plan = sunzi.make_plan(protocol, 40, 2)
    client = MemoisingClient(plan, KEY, "browser", max_epsilon=32)
    first = [client.report(value) for value in range(40)]
    assert [MemoisingClient(plan, KEY, "browser", max_epsilon=32).report(value) for value in range(40)] == first
    assert plan.tally(first).reports == 40
    background = client.report_index(None)
    assert background == client.report_index(None)
    assert plan.tally([background]).reports == 1


def test_other_values_attributes_plans_and_devices_have_noise_of_their_own():
    plan, other = (
        sunzi.make_plan("oue", LABELS * 1 + [f"label {i}" for i in range(60)], 1),
        sunzi.make_plan("oue", 64, 2),
    )
    reports = [
        MemoisingClient(plan, KEY, "browser", max_epsilon=32).report_index(0),
        MemoisingClient(plan, KEY, "browser", max_epsilon=32).report_index(1),
        MemoisingClient(plan, KEY, "language", max_epsilon=32).report_index(0),
        MemoisingClient(plan, KEY[::-1], "browser", max_epsilon=32).report_index(0),
        MemoisingClient(other, KEY, "browser", max_epsilon=32).report_index(0),
        MemoisingClient(plan, KEY, "browser", max_epsilon=32).report_index(None),
    ]
    assert len(set(reports)) == len(reports)


def test_the_derivation_is_the_one_that_other_clients_follow():
    """HMAC over a purpose, the fingerprint, and texts with their lengths; words from a counter, little-endian."""

    def text(value):
        return struct.pack("<I", len(value.encode())) + value.encode()

    plan = sunzi.make_plan("grr", LABELS, 1)
    client = MemoisingClient(plan, KEY, "Browser é", max_epsilon=32)
    prefix = b"sunzi memoised report, version 1\0" + bytes.fromhex(plan.fingerprint) + text("Browser é")
    secret = hmac.new(KEY, prefix + text("Chrome"), hashlib.sha256).digest()
    assert client.derive(1) == secret
    assert client.derive(None) == hmac.new(KEY, prefix + b"\xff\xff\xff\xff", hashlib.sha256).digest()
    bare = sunzi.make_plan("grr", 200, 1)
    message = b"sunzi memoised report, version 1\0" + bytes.fromhex(bare.fingerprint) + text("a") + text("123")
    assert (
        MemoisingClient(bare, KEY, "a", max_epsilon=32).derive(123) == hmac.new(KEY, message, hashlib.sha256).digest()
    )

    epoch = "https://collector.example/v1/collections/browsers/epochs/1"
    message = b"sunzi report id, version 1\0" + text("Browser é") + text(epoch)
    assert client.report_id(epoch) == hmac.new(KEY, message, hashlib.sha256).digest()[:16]

    stream = b"".join(hmac.new(secret, struct.pack("<Q", block), hashlib.sha256).digest() for block in range(3))
    source = DerivedSource(secret)
    words = [*source.words(1), *source.words(6), *source.words(5)]
    assert [int(word) for word in words] == list(struct.unpack("<12Q", stream))
    assert client.report("Chrome") == plan.client(source=DerivedSource(secret)).report("Chrome")


def test_terms_and_keys_are_checked():
    plan = sunzi.make_plan("grr", LABELS, 1)
    with pytest.raises(ParameterError, match="32 bytes"):
        MemoisingClient(plan, b"short", "browser", max_epsilon=32)
    with pytest.raises(ParameterError, match="empty"):
        MemoisingClient(plan, KEY, "", max_epsilon=32)
    with pytest.raises(PrivacyError):
        MemoisingClient(plan, KEY, "browser", max_epsilon="1/2")
    with pytest.raises(DomainError):
        MemoisingClient(plan, KEY, "browser", max_epsilon=32).report("Netscape")
    assert KEY.hex() not in repr(MemoisingClient(plan, KEY, "browser", max_epsilon=32))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["grr", "ss-compact", "mss-compact", "oue"])
def test_1000_rounds_of_a_constant_value_teach_no_more_than_one(protocol):
    """For every single user, an attacker does not succeed more often after 1,000 memoised rounds than after one; with
    fresh noise far fewer rounds give certainty. One device per user.
    """
    plan = sunzi.make_plan(protocol, 12, 1)
    generator = np.random.default_rng(11)
    values = generator.integers(0, 12, 400)
    devices = [MemoisingClient(plan, generator.bytes(KEY_BYTES), "browser", max_epsilon=32) for _ in range(values.size)]

    def rounds():
        first = [device.report_index(int(value)) for device, value in zip(devices, values, strict=True)]
        for number in range(1000):
            if number % 250 == 0:  # recreated now and then: a device's only memory is its key
                made = [device.report_index(int(value)) for device, value in zip(devices, values, strict=True)]
                assert made == first
            yield first

    grown = attack_growth(plan, values, rounds(), [1, 10, 1000], memoised=True)
    once, ten_times, in_the_end = (growth.success for growth in grown)
    assert once.rate == ten_times.rate == in_the_end.rate
    assert abs(once.rate - plan.attackability) < 0.125  # five standard errors
    fresh = attack_growth(plan, values, fresh_rounds(plan.client(seed=5), values), [1, 100])
    assert fresh[-1].success.rate > 0.9 > in_the_end.rate


@pytest.mark.slow
def test_memoised_reports_of_many_devices_estimate_as_fresh_ones_do():
    """The derived words are as good as random: the histogram of 20,000 devices is within its intervals (1e-7 each)."""
    plan = sunzi.make_plan("ss-compact", 8, 2)
    generator = np.random.default_rng(3)
    values = generator.choice(8, 20_000, p=np.arange(1, 9) / 36)
    reports = [
        MemoisingClient(plan, generator.bytes(KEY_BYTES), "x", max_epsilon=32).report_index(int(value))
        for value in values
    ]
    low, high = plan.estimate(plan.tally(reports)).interval(1 - 1e-7)
    truth = np.bincount(values, minlength=8) / values.size
    assert np.all((low <= truth) & (truth <= high))


def test_a_key_and_an_unsent_report_reveal_the_value():
    """As the documentation warns: with the key, trying all values finds the right one."""
    plan = sunzi.make_plan("oue", 100, 1)
    key = secrets.token_bytes(KEY_BYTES)
    report = MemoisingClient(plan, key, "browser", max_epsilon=32).report(37)
    matches = [
        value for value in range(100) if MemoisingClient(plan, key, "browser", max_epsilon=32).report(value) == report
    ]
    assert matches == [37]
