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
from sunzi.client.device.memoising import KEY_BYTES, MemoisingClient
from sunzi.client.errors import DomainError, ParameterError, PrivacyError
from sunzi.client.randomness import DerivedSource
from sunzi.client.reports import encode_report

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
    assert client.memoise(1).seed == secret
    assert client.memoise(None).seed == hmac.new(KEY, prefix + b"\xff\xff\xff\xff", hashlib.sha256).digest()
    bare = sunzi.make_plan("grr", 200, 1)
    message = b"sunzi memoised report, version 1\0" + bytes.fromhex(bare.fingerprint) + text("a") + text("123")
    seed = MemoisingClient(bare, KEY, "a", max_epsilon=32).memoise(123).seed
    assert seed == hmac.new(KEY, message, hashlib.sha256).digest()

    epoch = "https://collector.example/v1/collections/browsers/epochs/1"
    message = b"sunzi report id, version 1\0" + text("Browser é") + text(epoch)
    assert client.report_id(epoch) == hmac.new(KEY, message, hashlib.sha256).digest()[:16]

    stream = b"".join(hmac.new(secret, struct.pack("<Q", block), hashlib.sha256).digest() for block in range(3))
    source = DerivedSource(secret)
    words = [*source.words(1), *source.words(6), *source.words(5)]
    assert [int(word) for word in words] == list(struct.unpack("<12Q", stream))
    assert client.report("Chrome") == plan.client(source=DerivedSource(secret)).report("Chrome")


@pytest.fixture(scope="module")
def ordered():
    return sunzi.make_ordered(0, 1000, 64, 1)


@pytest.fixture(scope="module")
def tables():
    attributes = {"version": list("123"), "crashed": ["no", "yes"], "country": ["DE", "FR", "IT"]}
    return sunzi.make_tables(attributes, [("version", "crashed"), ("country",)], 2)


@pytest.fixture(scope="module")
def number():
    return sunzi.make_number(0, 1000, 4)


@pytest.mark.parametrize("kind", ["ordered", "tables", "number"])
def test_a_device_keeps_its_question_for_all_values(kind, request):
    """As many different reports as the question has cells, however many values there are; one per cell."""
    plan = request.getfixturevalue(kind)
    step = max(1, plan.domain.size // 64)
    questions = set()
    for seed in range(12):
        key = bytes([seed]) * KEY_BYTES
        client = MemoisingClient(plan, key, "x", max_epsilon=32)
        source = b"sunzi memoised question, version 1\0" + plan.digest + struct.pack("<I", 1) + b"x"
        asked = hmac.digest(key, source, "sha256")
        reports = {}
        for index in range(0, plan.domain.size, step):
            question, cell = plan.protocol.draw_cell(index, DerivedSource(asked))
            questions.add(question)
            made = client.report_index(index)
            assert reports.setdefault(cell, made) == made
            noise = DerivedSource(client.memoise(index).seed)
            encoded = plan.protocol.answer(question, cell, noise)
            assert made == encode_report(plan.protocol.report_layout, encoded)
        counted = plan.tally(list(reports.values()))
        assert sum(count > 0 for count in counted.block_reports) == 1, "all reports answer one question"
        if step == 1:
            assert client.report_index(None) in reports.values()
    assert len(questions) == 1 if kind == "number" else len(questions) > 1


def test_numbers_are_rounded_at_one_place(number):
    """A device rounds up from one fraction on: larger numbers never have smaller points."""
    for seed in range(20):
        asked = bytes([seed]) * 32
        points = [
            number.protocol.draw_cell(index, DerivedSource(asked))[1] for index in range(0, number.domain.size, 4099)
        ]
        assert points == sorted(points)


@pytest.mark.slow
def test_memoised_questions_of_many_devices_are_drawn_by_their_shares(ordered):
    """Four standard errors; and the estimate of 6,000 devices is near the truth."""
    generator = np.random.default_rng(8)
    values = generator.integers(0, 32, 6000)
    reports = [
        MemoisingClient(ordered, generator.bytes(KEY_BYTES), "x", max_epsilon=32).report_index(int(value))
        for value in values
    ]
    tally = ordered.tally(reports)
    shares = np.array([view.share for view in ordered.protocol.views]) / 2**32
    spread = np.sqrt(shares * (1 - shares) * len(values))
    assert np.all(np.abs(np.array(tally.block_reports) - shares * len(values)) <= 4 * spread)
    assert abs(ordered.estimate(tally).frequencies[:32].sum() - 1) < 4 * ordered.protocol.range_variance(6000) ** 0.5


def test_a_device_keeps_its_view_for_all_texts():
    """Texts that are alike in the view of a device give the same bytes; those that are not have other noise."""
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=5), 2, cells=1000)
    texts = ["hello", "helloworld", "helloes", "he", "held", "", "日本", "\ud800"]
    views = set()
    for seed in range(12):
        client = MemoisingClient(plan, bytes([seed]) * KEY_BYTES, "word", max_epsilon=2)
        reports = {text: client.report(text) for text in texts}
        assert reports == {text: client.report(text) for text in texts}
        assert reports["helloworld"] == reports["helloes"], "both are longer than planned"
        counted = plan.tally([*reports.values(), client.report_index(None)])
        [number] = np.flatnonzero(counted.block_reports)
        views.add(int(number))
        view = plan.protocol.views[number]
        cells = view.points(plan.domain.indices(texts)).tolist()
        noise = {cell: client.memoise(plan.domain.index(text)).seed for cell, text in zip(cells, texts, strict=True)}
        assert len(set(noise.values())) == len(set(cells))
        assert all(
            reports[text] == reports[other]
            for text, cell in zip(texts, cells, strict=True)
            for other in texts
            if cells[texts.index(other)] == cell
        )
    assert len(views) > 3


def test_the_background_record_is_kept_too():
    """With more records than 2^32 every attribute is drawn on its own."""
    attributes = {name: sunzi.Domain(6361) for name in "abcd"}
    plan = sunzi.make_tables(attributes, [("a",), ("b",), ("c",), ("d",)], 8)
    client = MemoisingClient(plan, KEY, "record", max_epsilon=32)
    assert plan.domain.size > 1 << 50
    assert client.report_index(None) == client.report_index(None)
    assert plan.tally([client.report_index(None), plan.client().report_background()]).reports == 2


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
