"""A device's ledger and outbox: the cap holds across plans, collections, threads, processes and crashes."""

import sqlite3
import stat
import threading
from contextlib import closing
from fractions import Fraction

import pytest
from device_processes import Process

import sunzi
from sunzi.client.device.device import Device
from sunzi.client.device.ledger import QueuedReport
from sunzi.client.device.memoising import MemoisingClient
from sunzi.client.errors import BudgetError, DomainError, ParameterError, PrivacyError, ReportError, StoreError
from sunzi.collector.sqlite import SqliteStore

THERE = "https://collector.example/v1/collections/browsers/epochs/1"
ELSEWHERE = "https://another.example/v1/collections/browsers/epochs/1"


def epoch_of(number):
    return THERE.removesuffix("1") + str(number)


@pytest.fixture
def plan():
    return sunzi.make_plan("grr", 100, 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


def bodies(device):
    return [report.body for report in device.waiting()]


def test_each_distinct_value_costs_once(plan, path):
    device = Device(path, 3, max_epsilon=1)
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
    device = Device(path, 32, max_epsilon=1)
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
    device = Device(path, 32, max_epsilon=1)
    texts = ["longer", "longest", "no", "no", "NO", "né"]
    costs = [device.queue(plan, "word", text, epoch_of(number)).cost for number, text in enumerate(texts, 1)]
    assert costs[:4] in ([1, 0, 1, 0], [1, 0, 0, 0])  # rarely two texts share a cell
    assert len(set(bodies(device))) <= sum(costs) == device.spent("word")
    outside = [device.queue(plan, "word", value, epoch_of(9 + number)) for number, value in enumerate([None, 3])]
    assert [(queued.outside, queued.cost) for queued in outside] in ([(True, 1), (True, 0)], [(True, 0)] * 2)
    assert device.client(plan, "word").report("longer") == bodies(device)[0]


def test_the_cap_holds_over_plans_and_collections(plan, path):
    device = Device(path, "5/2", max_epsilon=1, caps={"age": "1/2"})
    half = sunzi.make_plan("oue", 100, Fraction(1, 2))
    device.queue(plan, "browser", 1, THERE)
    device.queue(half, "browser", 1, THERE.replace("browsers", "renamed"))
    device.queue(plan, "browser", 2, epoch_of(2))
    before = device.waiting()
    with pytest.raises(BudgetError, match="5/2"):
        device.queue(half, "browser", 2, epoch_of(3))
    with pytest.raises(BudgetError):
        device.queue(plan, "age", 2, THERE)
    assert device.queue(half, "age", 2, THERE).cost == Fraction(1, 2)
    assert (device.spent("browser"), len(device.waiting())) == (Fraction(5, 2), len(before) + 1)
    with pytest.raises(ParameterError):
        Device(path, 0, max_epsilon=1)


def test_a_plan_above_the_limit_costs_nothing(plan, path):
    device = Device(path, 3, max_epsilon="1/2")
    with pytest.raises(PrivacyError):
        device.queue(plan, "browser", 1, THERE)
    with pytest.raises(PrivacyError):
        device.client(plan, "browser")
    assert (device.spent("browser"), device.waiting()) == (0, [])
    assert Device(path, 3, max_epsilon=1).queue(plan, "browser", 1, THERE).cost == 1
    with pytest.raises(TypeError, match="max_epsilon"):
        Device(path, 3)


def test_an_attribute_reports_once_per_epoch(plan, path):
    """Before and after the report is acknowledged, for any value, and in another process too."""
    device = Device(path, 10, max_epsilon=1)
    first = device.queue(plan, "browser", 7, THERE)
    assert not first.is_repeated
    for flushed in (1, 0):
        for value in (7, 8, "outside"):
            again = Device(path, 10, max_epsilon=1).queue(plan, "browser", value, THERE)
            assert (again.identity, again.cost, again.is_repeated) == (first.identity, 0, True)
        assert len(device.waiting()) == flushed
        assert device.flush(lambda report: None) == flushed
    assert device.spent("browser") == 1
    assert not device.queue(plan, "language", 7, THERE).is_repeated
    assert not device.queue(plan, "browser", 7, epoch_of(2)).is_repeated
    several = device.queue(plan, "browser", 7, THERE, several=True)
    assert (several.cost, several.is_repeated, several.identity != first.identity) == (0, False, True)
    assert len(device.waiting()) == 3


def test_an_epoch_that_refused_a_report_may_get_another(plan, path):
    device, refused = Device(path, 10, max_epsilon=1), []

    def upload(report):
        raise ReportError("this token is spent")

    device.queue(plan, "browser", 7, THERE, token="ab" * 32)
    assert device.flush(upload, lambda report, error: refused.append((report.token, str(error)))) == 0
    assert refused == [("ab" * 32, "this token is spent")]
    assert not device.queue(plan, "browser", 7, THERE, token="cd" * 32).is_repeated
    assert device.flush(lambda report: None) == 1


def test_ids_depend_on_the_device_the_attribute_and_the_epoch(plan, path):
    one, two = Device(path, 10, max_epsilon=1), Device(path.with_name("two.db"), 10, max_epsilon=1)
    cases = [(one, "browser", THERE), (two, "browser", THERE), (one, "language", THERE), (one, "browser", ELSEWHERE)]
    assert len({device.queue(plan, attribute, 7, url).identity for device, attribute, url in cases}) == 4


def test_a_renamed_collection_gets_no_fresh_noise(path):
    plan, device = sunzi.make_plan("oue", 64, 1), Device(path, 1, max_epsilon=1)
    for name in ("browsers", "browsers-2", "something-else"):
        device.queue(plan, "browser", 7, THERE.replace("browsers", name))
    assert len({report.destination for report in device.waiting()}) == 3
    assert len(set(bodies(device))) == 1
    assert device.spent("browser") == 1


def test_a_value_outside_the_domain_is_said_locally_and_still_reported(plan, path):
    device = Device(path, 1, max_epsilon=1)
    queued = device.queue(plan, "browser", 1000, THERE)
    assert (queued.outside, queued.cost) == (True, 1)
    assert device.queue(plan, "browser", "nonsense", epoch_of(2)).cost == 0
    assert len(set(bodies(device))) == 1
    labelled = sunzi.make_plan("grr", sunzi.Domain(["a", "b", "other"], other="other"), 1)
    assert not Device(path.with_name("other.db"), 1, max_epsilon=1).queue(labelled, "letter", "z", THERE).outside


def test_acknowledged_reports_are_deleted_and_others_sent_again(plan, path):
    device = Device(path, 10, max_epsilon=1)
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
def test_a_crash_between_debit_and_send_loses_neither(plan, path):
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
def test_a_process_killed_in_mid_queue(path, payments):
    """kill -9 while queueing: every debit has its report, every report its debit, and the cap still holds."""
    child = Process(path, 30, range(60))
    child.go()
    heard = [child.next_payment() for _ in range(payments)]
    told = len([line for line in heard if line.startswith("paid")]) + len(child.kill())
    device = Device(path, 30, max_epsilon=1)
    waiting = device.waiting()
    assert device.spent("browser") == len(waiting) >= told
    plan, paid, refused = sunzi.make_plan("grr", 100, 1), 0, 0
    for value in range(60):
        try:
            paid += device.queue(plan, "browser", value, THERE, several=True).cost
        except BudgetError:
            refused += 1
    assert (device.spent("browser"), paid, refused) == (30, 30 - len(waiting), 30)


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
    device, outcomes, barrier = Device(path, 3, max_epsilon=1), [], threading.Barrier(8)

    def race(value):
        barrier.wait()
        try:
            outcomes.append(device.queue(plan, "browser", value, THERE, several=True).cost)
        except BudgetError:
            outcomes.append(None)

    threads = [threading.Thread(target=race, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [1, 1, 1, *[None] * 5]
    assert device.spent("browser") == 3


def test_the_file_is_private_and_deleted_reports_are_overwritten(path):
    device = Device(path, 1, max_epsilon=1)
    wide = sunzi.make_plan("oue", 4000, 1)
    device.queue(wide, "browser", 1, THERE)
    body = bodies(device)[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert body in path.read_bytes()
    device.flush(lambda report: None)
    assert body not in path.read_bytes()


def test_an_unreachable_collector_does_not_delay_others(plan, path):
    device = Device(path, 10, max_epsilon=1)
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
    device = Device(path, 3, max_epsilon=1)
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
    device = Device(path, 3, max_epsilon=1)
    with pytest.raises(ParameterError):
        device.queue(plan, "browser", 1, destination)
    assert device.spent("browser") == 0


def test_a_file_that_is_not_a_device(tmp_path):
    (tmp_path / "not.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StoreError):
        Device(tmp_path / "not.db", 1, max_epsilon=1)
    with pytest.raises(StoreError, match=r"missing/device\.db: No such file"):
        Device(tmp_path / "missing" / "device.db", 1, max_epsilon=1)


def tables(path):
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_collectors_store_is_refused_as_a_device(tmp_path):
    SqliteStore(tmp_path / "store.db").close()
    before = tables(tmp_path / "store.db")
    with pytest.raises(StoreError, match="not a Sunzi device"):
        Device(tmp_path / "store.db", 1, max_epsilon=1)
    assert tables(tmp_path / "store.db") == before
    Device(tmp_path / "device.db", 1, max_epsilon=1)
    with pytest.raises(StoreError, match="not a Sunzi store"):
        SqliteStore(tmp_path / "device.db")
    with closing(sqlite3.connect(tmp_path / "device.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="version 99"):
        Device(tmp_path / "device.db", 1, max_epsilon=1)


VERSION_ZERO = """
CREATE TABLE device (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), key BLOB NOT NULL);
CREATE TABLE debits (
    attribute TEXT NOT NULL, entry BLOB NOT NULL, epsilon TEXT NOT NULL, PRIMARY KEY (attribute, entry)
) WITHOUT ROWID;
CREATE TABLE outbox (
    id BLOB PRIMARY KEY, destination TEXT NOT NULL, body BLOB NOT NULL, queued_at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO device VALUES (1, zeroblob(32));
INSERT INTO debits VALUES ('browser', x'00', '1/2');
INSERT INTO outbox VALUES (zeroblob(16), 'there', x'07', 1.5);
"""


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_file_is_upgraded(plan, path, version):
    Device(path, 2, max_epsilon=1)
    older = {1: "DROP TABLE reported; ", 2: ""}[version]
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{older}ALTER TABLE outbox DROP COLUMN groups; PRAGMA user_version = {version}")
    assert not Device(path, 2, max_epsilon=1).queue(plan, "browser", 1, THERE).is_repeated


def test_a_file_without_a_mark_is_taken_over(plan, path):
    """Its key, ledger and outbox stay. A waiting report does not name its collection, so it is kept, never guessed."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_ZERO)
    device = Device(path, 2, max_epsilon=1)
    assert device.spent("browser") == Fraction(1, 2)
    assert device.waiting() == [QueuedReport(bytes(16), "there", b"\x07")]
    assert device.flush() == 0
    assert device.queue(plan, "browser", 1, THERE).cost == 1
    assert [report.fingerprint for report in Device(path, 2, max_epsilon=1).waiting()] == [None, plan.fingerprint]
    assert bodies(device)[1] == MemoisingClient(plan, bytes(32), "browser", max_epsilon=32).report(1)
    assert device.flush(lambda report: None) == 2


def test_groups_are_kept_with_the_report(path):
    plan = sunzi.make_plan("grr", 100, 1, groups={"country": ["DE", "FR"], "release": ["1"]})
    device = Device(path, 3, max_epsilon=1)
    device.queue(plan, "browser", 7, THERE, groups={"release": "1", "country": "DE"})
    device.queue(plan, "browser", 7, epoch_of(2))
    assert [report.groups for report in Device(path, 3, max_epsilon=1).waiting()] == [
        {"country": "DE", "release": "1"},
        {},
    ]


def test_a_bad_group_costs_nothing(plan, path):
    declaring = sunzi.make_plan("grr", 100, 1, groups={"country": ["DE", "FR"]})
    device = Device(path, 3, max_epsilon=1)
    for made, groups in ((declaring, {"country": "IT"}), (declaring, {"city": "Bonn"}), (plan, {"country": "DE"})):
        with pytest.raises(ParameterError):
            device.queue(made, "browser", 7, THERE, groups=groups)
    assert (device.spent("browser"), device.waiting()) == (0, [])


@pytest.mark.parametrize("named", ["", "country", "country=DE,country=FR", 7, b"x"])
def test_damaged_groups_are_refused(plan, path, named):
    device = Device(path, 3, max_epsilon=1)
    device.queue(plan, "browser", 7, THERE)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE outbox SET groups = ?", (named,))
    with pytest.raises(StoreError, match="the groups of a report are"):
        device.waiting()
