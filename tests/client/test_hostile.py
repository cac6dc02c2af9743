"""What a stranger may put into a plan, an address or an answer, and what an application may pass by mistake."""

import http.server
import json
import os
import threading
from contextlib import closing
from datetime import date

import pytest
from agreeing import THERE, agreed

import sunzi
from sunzi import client
from sunzi.client.device.memoising import MemoisingClient
from sunzi.client.device.remote import message_of
from sunzi.client.errors import DomainError, ParameterError, PlanError

PLAN = sunzi.make_plan("grr", 5, 1)
TABLES = sunzi.make_tables({"a": ["x", "y"], "b": ["p", "q", "r"]}, [("a", "b")], 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.db"


def changed(plan, **changes):
    return json.dumps(plan.to_json() | changes)


def test_endless_lists_in_plans_are_refused_before_they_are_multiplied():
    parameters = TABLES.to_json()["parameters"]
    first = parameters["views"][0]
    for wrong in (
        {**parameters, "views": [{**first, "attributes": [0] * 100_000}]},
        {**parameters, "sizes": [2**53 - 1] * 100_000},
    ):
        with pytest.raises(PlanError):
            client.Plan.from_json(changed(TABLES, parameters=wrong))


def test_attributes_with_combinations_beyond_all_floats_are_refused():
    attributes = [{"name": str(number), "domain": {"size": 2**30}} for number in range(64)]
    with pytest.raises(PlanError, match=r"about 2\^1920 combinations"):
        client.Plan.from_json(changed(TABLES, domain={"size": 4, "attributes": attributes}))


def test_a_symbol_that_occurs_twice_is_found_among_many():
    symbols = [*map(str, range(60_000)), "x", "x"]
    with pytest.raises(DomainError, match="the token 'x' occurs twice"):
        client.OpenDomain(symbols, 4)


@pytest.mark.parametrize("clamp", [True, False])
@pytest.mark.parametrize(("text", "day"), [("0001-01-01T00:00:00+14:00", 0), ("9999-12-31T23:59:59-12:00", 7)])
def test_moments_beyond_the_calendar_are_outside(clamp, text, day):
    """Such a value must not stop a device from reporting: that would reveal it."""
    domain = client.OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 8, clamp=clamp)
    if clamp:
        assert domain.index(text) == day
    else:
        with pytest.raises(DomainError, match="is outside 2026-01-01 to 2026-01-08"):
            domain.index(text)


@pytest.mark.parametrize("index", [5, -1, True, 1.0, "1", 10**9])
def test_a_memoising_client_takes_indices_of_the_domain_only(index):
    memoising = MemoisingClient(PLAN, bytes(32), "x", max_epsilon=1)
    with pytest.raises(DomainError, match="an index must lie between 0 and 4"):
        memoising.report_index(index)


@pytest.mark.parametrize("secret", ["TOPSECRET\n", "TOP\x00SECRET", "ключ", ""])
def test_a_malformed_key_is_refused_without_being_shown(secret):
    with pytest.raises(ParameterError, match="an upload key is printable ASCII") as caught:
        client.RemoteCollection("http://127.0.0.1:1", max_epsilon=1, secret=secret)
    assert "SECRET" not in str(caught.value)


def test_a_device_stays_where_it_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    device = agreed("device.db", 1)
    device.queue(PLAN, "x", 1, THERE)
    (tmp_path / "elsewhere").mkdir()
    os.chdir("elsewhere")
    assert device.enabled
    assert device.spent("x") == 1


def test_reports_that_were_deleted_are_not_sent_after_all(path):
    """The device is turned off and on again while it sends."""
    device, sent = agreed(path, 9), []
    for number in (1, 2, 3):
        device.queue(PLAN, "x", number, f"https://{number}.example/v1/collections/c/epochs/1")

    def upload(report):
        sent.append(report)
        device.disable()
        device.enable()

    device.flush(upload)
    assert len(sent) == 1


class EarlyHints(http.server.BaseHTTPRequestHandler):
    """Answers the first upload twice: with early hints, and then with a receipt. Refuses all others."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        is_first = "/epochs/1/" in self.path
        if is_first:
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            self.wfile.flush()
        status = b"200 OK" if is_first else b"410 Gone"
        said = {"outcome": "counted"} if is_first else {"error": "ClosedEpochError", "message": "closed"}
        body = json.dumps(said).encode()
        self.wfile.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))

    def log_message(self, *arguments):
        """Say nothing."""


def test_an_answer_is_never_taken_for_that_of_another_report(path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), EarlyHints) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        device, refused = agreed(path, 9), []
        address = f"http://127.0.0.1:{server.server_port}/v1/collections/c/epochs"
        for number in (1, 2):
            device.queue(PLAN, "x", number, f"{address}/{number}")
        with closing(client.Sender(patience=0)) as sender:
            done = device.flush(sender, on_refused=lambda report, error: refused.append(report.destination))
        server.shutdown()
    assert done == 0, "no receipt was read for what it was"
    assert refused == [f"{address}/2"]


def test_a_server_cannot_write_lines_to_the_log():
    assert message_of(b'{"message": "x\\nCRITICAL:\\u001b[2J"}') == "x�CRITICAL:�[2J"
