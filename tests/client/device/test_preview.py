"""Previews and notices: what a device would send, shown before the user agrees."""

import re

import pytest
from agreeing import THERE, agreed, bodies, epoch_of, files

import sunzi
from sunzi.client import Device, notice
from sunzi.client.device.consent import VARIABLE
from sunzi.client.device.uploads import Upload
from sunzi.client.errors import BudgetError, ParameterError, PrivacyError

LABELS = ["Firefox", "Chrome", "Safari", "Edge", "other"]
PLANS = {
    **{name: sunzi.make_plan(name, sunzi.Domain(LABELS, other="other"), 1) for name in sunzi.catalogue()},
    "ordered": sunzi.make_ordered(0, 100, 16, 1),
    "number": sunzi.make_number(0, 100, 1),
    "tables": sunzi.make_tables({"a": ["x", "y"], "b": ["p", "q", "r"]}, [("a", "b"), ("b",)], 1),
    "prefixes": sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=4), 1, cells=1000),
}
VALUES = {"ordered": 40, "number": 40.5, "tables": {"a": "x", "b": "r"}, "prefixes": "word"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


def uploads(device):
    """What waits to be sent, byte for byte."""
    return [Upload(report.identity, report.body).to_bytes() for report in device.waiting()]


def report_of(shown):
    """The report of a preview, without its id."""
    return shown.upload.partition(b"\n")[2]


@pytest.mark.parametrize("name", PLANS)
def test_a_preview_is_what_the_device_sends_once_the_user_agrees(path, name):
    plan, device = PLANS[name], Device(path, 9, max_epsilon=1)
    values = [VALUES.get(name, "Safari"), None]
    previews = [device.preview(plan, "browser", value, epoch_of(number)) for number, value in enumerate(values, 1)]
    assert list(path.parent.iterdir()) == []
    assert device.enable()
    assert (device.spent("browser"), device.waiting()) == (0, [])
    for number, value in enumerate(values, 1):
        device.queue(plan, "browser", value, epoch_of(number))
    assert uploads(device) == [shown.upload for shown in previews]
    again = [device.preview(plan, "browser", value, epoch_of(number)) for number, value in enumerate(values, 1)]
    assert [shown.upload for shown in again] == uploads(device)


def test_a_preview_of_a_device_that_is_on_changes_nothing(path):
    device = agreed(path, 1)
    device.queue(PLANS["grr"], "browser", "Edge", THERE)
    before = files(path.parent)
    for value in LABELS:
        device.preview(PLANS["grr"], "browser", value, epoch_of(2))
    assert files(path.parent) == before


def test_previews_before_the_user_agrees_use_a_key_that_is_theirs_alone(path):
    """Another device, and this one after it was turned off, have other keys."""
    plan = sunzi.make_plan("oue", 500, 1)
    device, other = Device(path, 9, max_epsilon=1), Device(path, 9, max_epsilon=1)
    first = device.preview(plan, "browser", 1, THERE).upload
    assert other.preview(plan, "browser", 1, THERE).upload != first
    assert other.enable()
    assert device.preview(plan, "browser", 1, THERE).upload != first, "the key of the file is the one that counts"
    device.disable()
    after = device.preview(plan, "browser", 1, THERE).upload
    assert device.enable()
    device.queue(plan, "browser", 1, THERE)
    assert uploads(device) == [after]


def test_the_words_name_what_the_report_names():
    """The values that are listed are those that the report supports when it is counted."""
    plan = sunzi.make_plan("ss", LABELS, 1)
    device = Device("unused.db", 9, max_epsilon=1)
    for value in LABELS:
        shown = device.preview(plan, "browser", value, THERE)
        supported = plan.protocol.support_counts(plan.tally([report_of(shown)]))
        named = [label for label, is_named in zip(LABELS, supported, strict=True) if is_named]
        assert f"It names {len(named)} of 5 values: {', '.join(named)}. Such a report" in shown.words
        assert "at most 2.72 times as likely" in shown.words


@pytest.mark.parametrize("name", PLANS)
def test_the_preview_as_text(name):
    plan, device = PLANS[name], Device("unused.db", 9, max_epsilon=1)
    shown = device.preview(plan, "browser", VALUES.get(name, "Safari"), f"{THERE}/")
    first, words = str(shown).split("\n")
    assert first == f"to {THERE}: {shown.upload.hex()}"
    assert words.startswith("A line with an id, which differs in every epoch, then the report. It names ")
    assert words.endswith("any report is at most 2.72 times as likely under one value as under any other.")


def test_long_lists_are_shortened():
    shown = Device("unused.db", 9, max_epsilon=1).preview(sunzi.make_plan("oue", 1000, 1), "browser", 1, THERE)
    found = re.search(r"It names (\d+) of 1,000 values: ((?:\d+, ){5})…\. ", shown.words)
    assert found
    assert int(found[1]) > 5


def test_wide_domains_are_not_listed():
    """Ten million values would take minutes."""
    shown = Device("unused.db", 9, max_epsilon=1).preview(sunzi.make_plan("grr", 10_000_001, 1), "browser", 1, THERE)
    assert "It names an answer drawn at random" in shown.words


def test_a_preview_is_refused_as_its_report_would_be(path):
    device = Device(path, 9, max_epsilon="1/2")
    with pytest.raises(PrivacyError, match="epsilon 1"):
        device.preview(PLANS["grr"], "browser", "Edge", THERE)
    with pytest.raises(ParameterError, match="epoch"):
        Device(path, 9, max_epsilon=1).preview(PLANS["grr"], "browser", "Edge", "https://collector.example")


def test_previews_while_the_environment_forbids_reports(path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    assert Device(path, 9, max_epsilon=1).preview(PLANS["grr"], "browser", "Edge", THERE).upload
    assert list(path.parent.iterdir()) == []


def test_the_notice_says_what_and_how_much_and_how_to_say_no():
    said = notice(PLANS["grr"], "the browser")
    for part in (
        "report the browser",
        "2.72 times",
        "epsilon = 1",
        "unless you agree",
        "turn it off",
        "DO_NOT_TRACK=1",
    ):
        assert part in said
    assert 3 <= said.count(". ") + 1 <= 4


def test_a_preview_shows_what_a_spent_device_would_send(path):
    plan = PLANS["grr"]
    device = agreed(path, 1)
    device.queue(plan, "browser", "Edge", epoch_of(1))
    (latest,) = bodies(device)
    shown = device.preview(plan, "browser", "Chrome", epoch_of(2))
    assert report_of(shown) == latest
    assert "The privacy budget has ended: this is the latest report again" in shown.words
    assert device.queue(plan, "browser", "Chrome", epoch_of(2)).outcome == "kept"
    assert uploads(device)[1] == shown.upload
    silent = Device(path, 1, max_epsilon=1, when_spent="refuse").preview(plan, "browser", "Chrome", epoch_of(3))
    assert (silent.upload, silent.words) == (b"", "The privacy budget has ended: nothing would be sent.")
    assert str(silent).startswith(f"to {epoch_of(3)}: nothing\n")


def test_the_words_say_how_often_they_are_true(path):
    """Of a block response: the truth in T/2^64 of cases, and another value in the rest of the block."""
    plan, device = PLANS["ss"], Device(path, 9, max_epsilon=1)
    own, other = plan.protocol.support_probabilities()[0]
    inside, outside = (device.preview(plan, "browser", value, THERE).words for value in ("Safari", "Opera"))
    assert f"names the user's value in {100 * own:.3g} % of cases, and another one in {100 * other:.3g} %" in inside
    assert "names the user's value" in outside, "the plan has other, so that no value is outside"
    bare = sunzi.make_plan("ss", 9, 1)
    assert "made for a random value and says nothing about the user's" in device.preview(bare, "n", 99, THERE).words


def test_a_preview_has_all_that_is_sent(path):
    plan = PLANS["grr"].with_groups({"country": ["DE", "FR"]})
    device, token = agreed(path, 9), "ab" * 32
    shown = device.preview(plan, "browser", "Edge", THERE, token=token, groups={"country": "DE"})
    device.queue(plan, "browser", "Edge", THERE, token=token, groups={"country": "DE"})
    (queued,) = device.waiting()
    sent = Upload(queued.identity, queued.body, bytes.fromhex(queued.token), queued.groups).to_bytes()
    assert shown.upload == sent
    assert b" country=DE\n" in sent
    with pytest.raises(ParameterError, match="has no value"):
        device.preview(plan, "browser", "Edge", THERE, groups={"country": "IT"})


def test_a_preview_before_the_user_agrees_reckons_with_what_was_spent(path):
    plan = PLANS["grr"]
    small = Device(path, "1/2", max_epsilon=1)
    with pytest.raises(BudgetError, match="its first report costs 1"):
        small.preview(plan, "browser", "Edge", THERE)
    device = agreed(path, 1)
    device.queue(plan, "browser", "Edge", THERE)
    device.disable()
    assert device.preview(plan, "browser", "Edge", epoch_of(2)).upload == b"", "a new key would have to pay again"


def test_notices_state_the_budget_of_the_device(path):
    device = Device(path, 4, max_epsilon=1, caps={"age": 2})
    assert "randomised on this device before anything is sent" in device.notice(PLANS["grr"], "browser")
    assert "All reports of this device together: epsilon 4." in device.notice(PLANS["grr"], "browser")
    assert "together: epsilon 2." in device.notice(PLANS["grr"], "age")
