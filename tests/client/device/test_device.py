"""A device's ledger and outbox: the cap holds across plans, collections, threads, processes and crashes."""

import threading
from fractions import Fraction

import pytest
from agreeing import THERE, agreed, bodies, epoch_of
from device_processes import Process

import sunzi
from sunzi.client import Device
from sunzi.client.errors import (
    BudgetError,
    DomainError,
    ParameterError,
    PlanError,
    PrivacyError,
    ReportError,
    StoreError,
)

ELSEWHERE = "https://another.example/v1/collections/browsers/epochs/1"


@pytest.fixture
def plan():
    return sunzi.make_plan("grr", 100, 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


def test_each_distinct_value_costs_once(plan, path):
    device = agreed(path, 3)
    assert device.spent("browser") == 0
    assert device.queue(plan, "browser", 7, THERE).cost == 1
    assert [device.queue(plan, "browser", 7, epoch_of(number)).cost for number in range(2, 7)] == [0] * 5
    assert device.queue(plan, "browser", 8, epoch_of(7)).cost == 1
    assert (device.spent("browser"), device.spent("language")) == (2, 0)
    assert len(set(bodies(device)[:6])) == 1


def test_each_distinct_answer_to_the_kept_question_costs_once(path):
    """A device answers one table for good, and pays when its cells change, not when the rest of the record does."""
    attributes = {"version": ["1", "2", "3", "4"], "country": [f"country {number}" for number in range(4)]}
    plan = sunzi.make_tables(attributes, [("version",), ("country",)], 1)
    device = agreed(path, 32)
    costs, epochs = {}, iter(range(1, 100))
    for version in attributes["version"]:
        for country in attributes["country"]:
            record = {"version": version, "country": country}
            costs[version, country] = device.queue(plan, "record", record, epoch_of(next(epochs))).cost
    assert sum(costs.values()) == device.spent("record") == 4
    assert len(set(bodies(device))) <= 4
    paid = {pair for pair, cost in costs.items() if cost}
    assert len({version for version, _ in paid}) == 1 or len({country for _, country in paid}) == 1
    outside = device.queue(plan, "record", {"version": "5"}, epoch_of(99))
    assert (outside.outside, outside.cost) == (True, 0)


def test_texts_that_look_alike_in_the_kept_view_cost_once(path):
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=4), 1, cells=1000)
    device = agreed(path, 32)
    texts = ["longer", "longest", "no", "no", "NO", "né"]
    costs = [device.queue(plan, "word", text, epoch_of(number)).cost for number, text in enumerate(texts, 1)]
    assert costs[:4] in ([1, 0, 1, 0], [1, 0, 0, 0])  # rarely two texts share a cell
    assert len(set(bodies(device))) <= sum(costs) == device.spent("word")
    outside = [device.queue(plan, "word", value, epoch_of(9 + number)) for number, value in enumerate([None, 3])]
    assert [(queued.outside, queued.cost) for queued in outside] in ([(True, 1), (True, 0)], [(True, 0)] * 2)
    assert device.client(plan, "word").report("longer") == bodies(device)[0]


def test_the_cap_holds_over_plans_and_collections(plan, path):
    device = agreed(path, "5/2", caps={"age": "1/2"})
    half = sunzi.make_plan("oue", 100, Fraction(1, 2))
    device.queue(plan, "browser", 1, THERE)
    device.queue(half, "browser", 1, THERE.replace("browsers", "renamed"))
    device.queue(plan, "browser", 2, epoch_of(2))
    assert device.queue(half, "browser", 2, epoch_of(3)).cost == 0
    with pytest.raises(BudgetError, match="'age' may spend epsilon 1/2 in its lifetime, and its first report costs 1"):
        device.queue(plan, "age", 2, THERE)
    assert device.queue(half, "age", 2, THERE).cost == Fraction(1, 2)
    assert (device.spent("browser"), device.spent("age"), len(device.waiting())) == (Fraction(5, 2), Fraction(1, 2), 5)


def test_a_plan_above_the_limit_costs_nothing(plan, path):
    device = agreed(path, 3, max_epsilon="1/2")
    for call in (lambda: device.queue(plan, "browser", 1, THERE), lambda: device.client(plan, "browser")):
        with pytest.raises(PrivacyError):
            call()
    assert (device.spent("browser"), device.waiting()) == (0, [])
    assert Device(path, 3, max_epsilon=1).queue(plan, "browser", 1, THERE).cost == 1


@pytest.mark.parametrize(("limit", "most"), [("max_bits", 63), ("max_work", 63)])
def test_a_report_that_costs_the_device_too_much_is_refused(path, limit, most):
    plan = sunzi.make_plan("oue", 64, 1)
    device = agreed(path, 3, **{limit: most})
    for call in (
        lambda: device.queue(plan, "browser", 1, THERE),
        lambda: device.preview(plan, "browser", 1, THERE),
        lambda: device.client(plan, "browser"),
    ):
        with pytest.raises(PlanError, match="64"):
            call()
    assert (device.spent("browser"), device.waiting()) == (0, [])
    assert Device(path, 3, max_epsilon=1, **{limit: most + 1}).queue(plan, "browser", 1, THERE).outcome == "queued"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"lifetime_epsilon": 0, "max_epsilon": 1}, ParameterError),
        ({"lifetime_epsilon": 1, "max_epsilon": -1}, ParameterError),
        ({"lifetime_epsilon": 1, "max_epsilon": 1, "caps": {"age": "nan"}}, ParameterError),
        ({"lifetime_epsilon": 1, "max_epsilon": 1, "when_spent": "silent"}, ParameterError),
        ({"lifetime_epsilon": 1}, TypeError),
    ],
)
def test_terms_are_checked(path, arguments, error):
    with pytest.raises(error):
        Device(path, **arguments)


def test_an_attribute_reports_once_per_epoch(plan, path):
    """Before and after the report is acknowledged, for any value, and in another process too."""
    device = agreed(path, 10)
    first = device.queue(plan, "browser", 7, THERE)
    assert first.outcome == "queued"
    for flushed in (1, 0):
        for value in (7, 8, "outside"):
            again = Device(path, 10, max_epsilon=1).queue(plan, "browser", value, THERE)
            assert (again.outcome, again.identity, again.cost) == ("repeated", first.identity, 0)
        assert len(device.waiting()) == flushed
        assert device.flush(lambda report: None) == flushed
    assert device.spent("browser") == 1
    assert device.queue(plan, "language", 7, THERE).outcome == "queued"
    assert device.queue(plan, "browser", 7, epoch_of(2)).outcome == "queued"
    several = device.queue(plan, "browser", 7, THERE, several=True)
    assert (several.outcome, several.cost) == ("queued", 0)
    assert len({report.identity for report in device.waiting()} | {first.identity}) == 4


def test_an_epoch_that_refused_a_report_may_get_another(plan, path):
    device, refused = agreed(path, 10), []

    def upload(report):
        raise ReportError("this token is spent")

    device.queue(plan, "browser", 7, THERE, token="ab" * 32)
    assert device.flush(upload, lambda report, error: refused.append((report.token, str(error)))) == 0
    assert refused == [("ab" * 32, "this token is spent")]
    assert device.queue(plan, "browser", 7, THERE, token="cd" * 32).outcome == "queued"
    assert device.flush(lambda report: None) == 1


def test_ids_depend_on_the_device_the_attribute_and_the_epoch(plan, path):
    one, two = agreed(path, 10), agreed(path.with_name("two.db"), 10)
    cases = [(one, "browser", THERE), (two, "browser", THERE), (one, "language", THERE), (one, "browser", ELSEWHERE)]
    assert len({device.queue(plan, attribute, 7, url).identity for device, attribute, url in cases}) == 4


def test_a_renamed_collection_gets_no_fresh_noise(path):
    plan, device = sunzi.make_plan("oue", 64, 1), agreed(path, 1)
    for name in ("browsers", "browsers-2", "something-else"):
        device.queue(plan, "browser", 7, THERE.replace("browsers", name))
    assert len({report.destination for report in device.waiting()}) == 3
    assert len(set(bodies(device))) == 1
    assert device.spent("browser") == 1


def test_a_value_outside_the_domain_is_said_locally_and_still_reported(plan, path):
    device = agreed(path, 1)
    queued = device.queue(plan, "browser", 1000, THERE)
    assert (queued.outside, queued.cost) == (True, 1)
    assert device.queue(plan, "browser", "nonsense", epoch_of(2)).cost == 0
    assert len(set(bodies(device))) == 1
    labelled = sunzi.make_plan("grr", sunzi.Domain(["a", "b", "other"], other="other"), 1)
    assert not agreed(path.with_name("other.db"), 1).queue(labelled, "letter", "z", THERE).outside


def test_acknowledged_reports_are_deleted_and_others_sent_again(plan, path):
    device = agreed(path, 10)
    for value in range(6):
        device.queue(plan, "browser", value, THERE, several=True)
    queued, tried = device.waiting(), []

    def upload(report):
        tried.append(report)
        if len(tried) == 3:
            raise StoreError("offline")
        if len(tried) == 2:
            raise ReportError("refused")

    assert device.flush(upload) == 1
    assert tried == queued[:3]
    assert device.waiting() == queued[2:]
    sent = []
    assert Device(path, 10, max_epsilon=1).flush(sent.append) == 4
    assert sent == queued[2:]
    assert device.waiting() == []
    assert device.spent("browser") == 6


@pytest.mark.slow
def test_a_crash_between_debit_and_send_loses_neither(path):
    """The process ends after the debit and before the first byte is sent; the next process sends the paid report."""
    child = Process(path, 3, [1, 2])
    child.go()
    assert child.next_payment() == "paid 1\n"
    child.kill()
    device = Device(path, 3, max_epsilon=1)
    assert len(device.waiting()) == device.spent("browser") >= 1
    first = device.waiting()

    def dies(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        device.flush(dies)
    assert device.waiting() == first
    sent = []
    device.flush(sent.append)
    assert sent == first
    assert len(device.waiting()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("payments", [0, 1, 5, 20])
def test_a_process_killed_in_mid_queue(plan, path, payments):
    """kill -9 while queueing: every debit has its report, every report its debit, and the cap still holds."""
    child = Process(path, 30, range(60))
    child.go()
    heard = [child.next_payment() for _ in range(payments)]
    told = len([line for line in heard if line.startswith("paid")]) + len(child.kill())
    device = Device(path, 30, max_epsilon=1, when_spent="refuse")
    waiting = device.waiting()
    assert device.spent("browser") == len(waiting) >= told
    queued = [device.queue(plan, "browser", value, THERE, several=True) for value in range(60)]
    assert device.spent("browser") == 30
    assert sum(each.cost for each in queued) == 30 - len(waiting)
    assert {each.outcome for each in queued[30:]} == {"silent"}


@pytest.mark.slow
def test_processes_racing_for_the_last_budget(path):
    racers = [Process(path, 5, range(40)), Process(path, 5, range(39, -1, -1)), Process(path, 5, range(50, 90))]
    for racer in racers:
        racer.go()
    assert sum(sum(racer.end()) for racer in racers) == 5
    device = Device(path, 5, max_epsilon=1)
    assert device.spent("browser") == 5
    assert len(device.waiting()) >= 5


def test_threads_racing_for_the_last_budget(plan, path):
    device, outcomes, barrier = agreed(path, 3), [], threading.Barrier(8)

    def race(value):
        barrier.wait()
        queued = device.queue(plan, "browser", value, THERE, several=True)
        outcomes.append((queued.outcome, queued.cost))

    threads = [threading.Thread(target=race, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [*[("kept", 0)] * 5, *[("queued", 1)] * 3]
    assert device.spent("browser") == 3


def test_an_unreachable_collector_does_not_delay_others(plan, path):
    device = agreed(path, 10)
    for value, destination in enumerate([THERE, ELSEWHERE, THERE, ELSEWHERE]):
        device.queue(plan, "browser", value, destination, several=True)
    tried = []

    def upload(report):
        tried.append(report.destination)
        if report.destination == THERE:
            raise StoreError("offline")

    assert device.flush(upload) == 2
    assert tried == [THERE, ELSEWHERE, ELSEWHERE]
    assert [report.destination for report in device.waiting()] == [THERE, THERE]


def test_a_forgotten_label_file_is_an_error_and_costs_nothing(path, tmp_path):
    """It must not count as a value outside the domain: every user would send noise."""
    domain = sunzi.Domain(["alpha", "beta", "gamma"], separate_labels=True)
    domain.save_labels(tmp_path / "labels.txt")
    complete = sunzi.make_plan("grr", domain, 1)
    without = sunzi.Plan.from_json(complete.canonical)
    device = agreed(path, 3)
    with pytest.raises(ParameterError, match="labels=PATH") as caught:
        device.queue(without, "letter", "alpha", THERE)
    assert not isinstance(caught.value, DomainError)
    assert (device.spent("letter"), device.waiting()) == (0, [])
    with_labels = device.queue(without.with_labels(tmp_path / "labels.txt"), "letter", "alpha", THERE)
    assert (with_labels.outside, with_labels.cost) == (False, 1)


NO_EPOCHS = [
    "there",
    "https://collector.example",
    THERE.removesuffix("/epochs/1"),
    THERE + "/reports",
    THERE.replace("https", "ftp"),
    THERE.replace("example", "example:port"),
    THERE.replace("browsers", "No Name"),
    "https://collector.example?" + THERE,
]


@pytest.mark.parametrize("destination", NO_EPOCHS)
def test_a_report_belongs_to_an_epoch(plan, path, destination):
    device = agreed(path, 3)
    with pytest.raises(ParameterError):
        device.queue(plan, "browser", 1, destination)
    assert device.spent("browser") == 0


def test_groups_are_kept_with_the_report(path):
    plan = sunzi.make_plan("grr", 100, 1, groups={"country": ["DE", "FR"], "release": ["1"]})
    device = agreed(path, 3)
    device.queue(plan, "browser", 7, THERE, groups={"release": "1", "country": "DE"})
    device.queue(plan, "browser", 7, epoch_of(2))
    assert [report.groups for report in Device(path, 3, max_epsilon=1).waiting()] == [
        {"country": "DE", "release": "1"},
        {},
    ]


def test_a_bad_group_costs_nothing(plan, path):
    declaring = sunzi.make_plan("grr", 100, 1, groups={"country": ["DE", "FR"]})
    device = agreed(path, 3)
    for made, groups in ((declaring, {"country": "IT"}), (declaring, {"city": "Bonn"}), (plan, {"country": "DE"})):
        with pytest.raises(ParameterError):
            device.queue(made, "browser", 7, THERE, groups=groups)
    assert (device.spent("browser"), device.waiting()) == (0, [])
