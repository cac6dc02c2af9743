"""Serving from Python: one call, a free port, and everything committed at the end."""

import os
import secrets
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest
from running import Running, running
from serving import serving, serving_process

import sunzi
from sunzi.client.errors import ParameterError, ReportError, StoreError
from sunzi.collector import AnotherPlanError, Collector, RemoteCollector, Settings, open_store, serve, uploads
from sunzi.collector import service as service_module
from sunzi.collector.server import listen

PLAN = sunzi.make_plan("grr", ["a", "b", "c"], 1)
OTHER = sunzi.make_plan("ss-compact", 50, 1)


def batch():
    return PLAN.client(seed=1).report_indices(np.arange(20) % 3)


def upload(url, body):
    remote = RemoteCollector(url, max_epsilon=None, patience=0)
    try:
        return remote.upload(remote.current(), body)
    finally:
        remote.close()


def test_a_plan_is_the_default_collection(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with serve(PLAN) as collector:
        assert upload(collector.url, batch()) == "counted"
        assert collector.collector.tally(collector.collector.find("default")) == PLAN.tally(batch())
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []  # the temporary store is gone
    with pytest.raises(StoreError, match="could not be reached"):
        upload(collector.url, batch())


def test_a_store_that_is_named_stays(tmp_path):
    for total in (20, 40):
        with serve({"first": PLAN, "second": OTHER}, store=tmp_path / "store.db") as collector:
            assert upload(f"{collector.url}/v1/collections/first", batch()) == "counted"
            assert collector.open("third", PLAN).epoch.number == 1
        store = open_store(tmp_path / "store.db", create=False)
        assert [(epoch.collection, epoch.reports) for epoch in store.epochs()] == [
            ("first", total),
            ("second", 0),
            ("third", 0),
        ]
        store.close()


def test_a_plan_without_a_name_is_for_the_only_collection_and_a_new_plan_is_announced(tmp_path):
    path = tmp_path / "store.db"
    with serve({"first": PLAN}, store=path):
        pass
    with serve(PLAN, store=path) as collector:
        assert collector.collector.collections() == ["first"]
    with pytest.raises(AnotherPlanError, match="protocol grr → ss-compact, values 3 → 50"), serve(OTHER, store=path):
        pass
    with serve(OTHER, store=path, old_plan="close") as collector:
        assert [epoch.is_open for epoch in collector.collector.epochs("first")] == [False, True]


def test_a_postgres_store(server):
    address = server.fresh_address()
    with serve(PLAN, store=address) as collector:
        assert upload(collector.url, batch()) == "counted"
    store = open_store(address, create=False)
    assert store.epochs()[0].reports == 20
    store.close()


def test_accepted_uploads_are_committed_on_exit(tmp_path):
    """The block ends while another writer still holds a lock on the store."""
    answers, held, over = [], threading.Event(), threading.Event()

    def lock():
        blocker = open_store(tmp_path / "store.db")
        with blocker.transaction():
            held.set()
            assert over.wait(60)
        blocker.close()

    locker = threading.Thread(target=lock)
    with serve(PLAN, store=tmp_path / "store.db") as collector:
        locker.start()
        assert held.wait(60)
        sender = threading.Thread(target=lambda: answers.append(upload(collector.url, batch())))
        sender.start()
        while collector.app.state.service.writer.counts.deposits == 0:
            sender.join(0.01)
        threading.Timer(0.3, over.set).start()
    assert over.is_set()
    sender.join(60)
    locker.join(60)
    assert answers == ["counted"]
    store = open_store(tmp_path / "store.db", create=False)
    assert store.epochs()[0].reports == 20
    store.close()


def test_a_store_that_hangs_is_noticed_and_does_not_keep_the_service_from_stopping(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "_CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(service_module, "_CHECK_WAIT_SECONDS", 0.2)
    monkeypatch.setattr(uploads, "_COMMIT_SECONDS", 0.2)
    over = threading.Event()

    def hang(*_):
        assert over.wait(60)
        raise StoreError("it hung")

    try:
        with running(tmp_path / "store.db", {"default": PLAN}) as service:
            monkeypatch.setattr(service.collector.store, "commit", hang)
            monkeypatch.setattr(service.collector.store, "check", hang)
            for _ in range(2):
                answer = service.send_batch(batch())
                assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
                assert service.get("/ready").status == 503
            assert service.get("/health").status == 200
        assert not over.is_set()
    finally:
        over.set()


TRACING = '''
"""Everything that OpenTelemetry and its instrumentation of FastAPI could record goes to a file."""
import fastapi
from opentelemetry import _logs, metrics, trace

def note(*what):
    with open("traced", "a") as file:
        print(*what, file=file)

class Tracer(trace.NoOpTracer):
    def start_span(self, *arguments, **named):
        note(arguments, named)
        return super().start_span(*arguments, **named)

class Tracers(trace.TracerProvider):
    def get_tracer(self, *arguments, **named):
        return Tracer()

class Meters(metrics.MeterProvider):
    def get_meter(self, *arguments, **named):
        note(arguments, named)
        return metrics.NoOpMeter("fake")

class Loggers(_logs.LoggerProvider):
    def get_logger(self, *arguments, **named):
        note(arguments, named)
        return _logs.NoOpLogger("fake")

class Instrumented(fastapi.FastAPI):
    def __init__(self, *arguments, **named):
        note("instrumented")
        super().__init__(*arguments, **named)

fastapi.FastAPI = Instrumented
trace.set_tracer_provider(Tracers())
metrics.set_meter_provider(Meters())
_logs.set_logger_provider(Loggers())
'''


@pytest.mark.slow
def test_tracing_that_is_installed_records_nothing(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TRACING)
    PLAN.save(tmp_path / "plan.json")
    environment = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    }
    with serving(tmp_path, "plan.json", **environment) as url:
        assert upload(url, batch()) == "counted"
        with pytest.raises(ReportError):
            upload(url, batch()[:-1])
    assert not (tmp_path / "traced").exists()


HURRY = """
from sunzi.collector import server, service
server._GRACE_SECONDS = service._CLOSE_SECONDS = 1
"""


class Uploads(threading.Thread):
    """Uploads batches under new ids until the collector is gone; the last one may or may not have been counted."""

    def __init__(self, url):
        super().__init__()
        self.acknowledged, self.last = 0, secrets.token_bytes(16)
        self._remote = RemoteCollector(url, max_epsilon=None, patience=0)
        self._epoch = self._remote.current()

    def run(self):
        try:
            while True:
                self._remote.upload(self._epoch, batch(), identity=self.last)
                self.acknowledged, self.last = self.acknowledged + 1, secrets.token_bytes(16)
        except StoreError:
            self._remote.close()


def count_the_rest(address, identities):
    """Send again what was not acknowledged, as clients do; return the number of uploads that the store has counted."""
    with closing(open_store(address, create=False)) as store:
        collector = Collector(store)
        live = collector.find("default")
        store.commit([collector.deposit(live, identity, batch()) for identity in identities])
        return collector.tally(live).reports / 20


@pytest.mark.slow
def test_sigterm_under_load_loses_nothing(tmp_path):
    PLAN.save(tmp_path / "plan.json")
    with serving_process(tmp_path, "plan.json", "--store", "store.db") as (process, url):
        uploads = [Uploads(url) for _ in range(4)]
        for each in uploads:
            each.start()
        while any(each.acknowledged < 3 for each in uploads):
            time.sleep(0.01)
        process.terminate()
        process.wait(60)
        assert process.stderr.read() == ""
    for each in uploads:
        each.join()
    counted = count_the_rest(tmp_path / "store.db", [each.last for each in uploads])
    assert counted == sum(each.acknowledged + 1 for each in uploads)


@pytest.mark.slow
def test_sigterm_ends_a_collector_whose_database_does_not_answer(tmp_path, server):
    """The backends are stopped, so they keep their connections and answer nothing."""
    PLAN.save(tmp_path / "plan.json")
    address = f"{server.fresh_address()}&application_name=stopped"
    identities = [secrets.token_bytes(16) for _ in range(4)]
    with (
        serving_process(tmp_path, "plan.json", "--store", address, before=HURRY) as (process, url),
        psycopg.connect(server.conninfo, autocommit=True) as connection,
        ThreadPoolExecutor(4) as pool,
    ):
        service = Running(url, None)
        assert service.send_batch(batch()).status == 200
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'stopped'"
        backends = [row[0] for row in connection.execute(query)]
        try:
            for backend in backends:
                os.kill(backend, signal.SIGSTOP)
            sent = [pool.submit(service.send_batch, batch(), identity.hex()) for identity in identities]
            time.sleep(0.5)
            process.terminate()
            process.wait(60)
        finally:
            for backend in backends:
                os.kill(backend, signal.SIGCONT)
        for answer in sent:
            assert (answer.result().status, b"is stopping" in answer.result().body) == (503, True)
        written = process.stderr.read()
        assert "the store did not answer for 1 s; " in written
        assert "Traceback" not in written
    assert count_the_rest(address, identities) == 1 + 4


def test_two_services_on_one_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    with (
        serve(PLAN, store=tmp_path / "store.db"),
        pytest.raises(StoreError, match="in use by another collector"),
        serve(PLAN, store=tmp_path / "store.db"),
    ):
        pass
    with serve(PLAN, store=tmp_path / "store.db"):
        pass


def test_a_port_that_is_taken_is_reported(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StoreError, match=f"port {port}.*choose another"), serve(PLAN, port=port):
            pass


def test_responses_are_sent_without_waiting_for_acknowledgements():
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_address_comes_from_settings_or_arguments():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serve(PLAN, settings=Settings(port=port)) as collector:
        assert collector.url == f"http://127.0.0.1:{port}"
    with serve(PLAN, settings=Settings(port=port), port=0, host="localhost") as collector:
        assert collector.url.startswith("http://127.0.0.1:")
    with pytest.raises(ParameterError, match="admin token"), serve(PLAN, host="0.0.0.0"):
        pass


def test_an_error_in_the_block_stops_the_service():
    with pytest.raises(ZeroDivisionError), serve(PLAN) as collector:
        raise ZeroDivisionError
    assert not any(thread.name == "sunzi-collector" for thread in threading.enumerate())
    with pytest.raises(StoreError, match="could not be reached"):
        upload(collector.url, batch())


def test_a_bad_name_leaves_nothing_running(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ParameterError, match="name"), serve({"Bad Name": PLAN}):
        pass
    assert list(Path(tmp_path).iterdir()) == []
