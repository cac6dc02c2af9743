"""Kill a collector at random moments, resend every deposit it did not acknowledge, and send half of them twice.

A :class:`Victim` accepts parcels and can be killed: here a process on pipes, or the database server that it uses; a
service behind HTTP would fit too. :func:`torture` runs a victim through epochs of kills and returns its findings.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO

from ledger import COUNTERS, Ledger, Parcel

import sunzi
from sunzi.collector.stores import open_store

_HERE = Path(__file__).resolve().parent
_STALLED_SECONDS = 120.0


class Victim(Protocol):
    """Counts parcels and can be killed. Only :meth:`kill` may be called from another thread."""

    def start(self) -> None:
        """Start, or restart after a kill; need not wait until it is ready."""

    def wait(self) -> None:
        """Wait until it is ready or dead."""

    def deliver(self, parcels: Sequence[Parcel]) -> list[tuple[bytes, str]]:
        """Send parcels; return the answers received before it died."""

    def close_epoch(self, key: int) -> bool:
        """Close an epoch; return whether the closing was acknowledged."""

    def kill(self) -> None:
        """Send SIGKILL at any moment."""

    @property
    def is_dead(self) -> bool:
        """Whether it was killed since its last start."""

    def stop(self) -> None:
        """Shut it down cleanly."""


class _Nursery:
    """A process that has imported all modules and forks collectors."""

    def __init__(self) -> None:
        source = str(Path(sunzi.__file__).resolve().parents[1])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, str(_HERE)]), "OPENBLAS_NUM_THREADS": "1"}
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, _HERE / "torture_victim.py"], stdin=theirs, env=environment
            )

    def fork(self, words: Sequence[str]) -> _Process:
        (its_input, write_end), (read_end, its_output) = os.pipe(), os.pipe()
        socket.send_fds(self._requests, ["\n".join(words).encode()], [its_input, its_output])
        number = int(self._requests.recv(20))
        os.close(its_input)
        os.close(its_output)
        return _Process(os.pidfd_open(number), os.fdopen(write_end, "w"), os.fdopen(read_end))

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


@functools.cache
def _nursery() -> _Nursery:
    """The nursery of all tests in this process."""
    nursery = _Nursery()
    atexit.register(nursery.close)
    return nursery


@dataclass(frozen=True)
class _Process:
    """A forked collector; unlike its process id, the descriptor never refers to another process."""

    descriptor: int
    stdin: TextIO
    stdout: TextIO

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    def end(self) -> None:
        """Close its input and wait until it has ended, or kill it after 30 seconds."""
        with contextlib.suppress(OSError):
            self.stdin.close()
        if not select.select([self.descriptor], [], [], 30)[0]:
            self.kill()
            select.select([self.descriptor], [], [])
        self.stdout.close()
        os.close(self.descriptor)


class Collector:
    """A victim: a store and its writer in a process."""

    def __init__(self, address: str, *options: str) -> None:
        self._words = [address, *options]
        self._process: _Process | None = None
        self._killed = False

    def start(self) -> None:
        self._killed = False
        self._ready = False
        self._process = _nursery().fork(self._words)

    def wait(self) -> None:
        if not self._ready:
            line = self._process.stdout.readline()
            assert line == "ready\n" or self._killed, "the collector ended by itself"
            self._ready = True

    def deliver(self, parcels: Sequence[Parcel]) -> list[tuple[bytes, str]]:
        answers = self._exchange([parcel.line() for parcel in parcels])
        return [(bytes.fromhex(name), outcome) for name, outcome in answers]

    def close_epoch(self, key: int) -> bool:
        return [outcome for _, outcome in self._exchange([f"close {key}\n"])] == ["closed"]

    def _exchange(self, lines: Sequence[str]) -> list[tuple[str, str]]:
        """Send lines and read one answer per line, or fewer if the process dies."""
        self.wait()
        sender = threading.Thread(target=self._send, args=(lines,))
        sender.start()
        answers = []
        for _ in lines:
            line = self._process.stdout.readline()
            if not line.endswith("\n"):  # half a line acknowledges nothing
                break
            name, outcome = line.split()
            answers.append((name, outcome))
        sender.join()
        assert len(answers) == len(lines) or self._killed, "the collector ended by itself"
        return answers

    def _send(self, lines: Sequence[str]) -> None:
        with contextlib.suppress(OSError):
            self._process.stdin.write("".join(lines))
            self._process.stdin.flush()

    def kill(self) -> None:
        self._killed = True
        self._process.kill()

    @property
    def is_dead(self) -> bool:
        return self._killed

    def stop(self) -> None:
        """Let the process finish if it is alive, and clean up after it."""
        if self._process is not None:
            self._process.end()
            self._process = None


class CollectorOfServer(Collector):
    """A victim whose database server is killed while the collector keeps running and must cope."""

    def __init__(self, address: str, server: object) -> None:
        super().__init__(address)
        self._server = server
        self._dead = False

    def start(self) -> None:
        if self._dead:
            self._server.start()
        self._dead = False
        if self._process is None:
            super().start()

    def kill(self) -> None:
        self._dead = True
        self._server.kill()

    @property
    def is_dead(self) -> bool:
        return self._dead

    def stop(self) -> None:
        """The collector survives the server; only :meth:`end` ends it."""

    def end(self) -> None:
        super().stop()


@dataclass
class Findings:
    """Findings of a torture run: ``differences`` must be empty, all other counts should be large."""

    kills: int = 0
    epochs: int = 0
    acknowledged: int = 0
    duplicates: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    killed_while: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def torture(
    victim: Victim, address: str, kills: int, *, kills_per_epoch: int, seed: int, parcels: int = 150
) -> Findings:
    """Kill a victim ``kills`` times over as many epochs as needed, and compare every epoch bit by bit when it ends.

    No other connection to the store is open while the victim runs, so that each start begins with a recovery.
    """
    findings, chance = Findings(), random.Random(seed)
    while findings.kills < kills:
        with _opened(address) as store:
            ledger = Ledger(store.open_epoch("torture", b"{}", COUNTERS).key, chance)
        until = min(kills, findings.kills + kills_per_epoch)
        while findings.kills < until:
            _one_life(victim, ledger, findings, chance, parcels)
        _close(victim, ledger, findings, chance)
        with _opened(address) as store:
            _verify(store, ledger, findings)
    return findings


@contextlib.contextmanager
def _opened(address: str) -> Iterator[object]:
    store = open_store(address)
    try:
        yield store
    finally:
        store.close()


@contextlib.contextmanager
def _doomed(victim: Victim, findings: Findings, chance: random.Random, longest: float) -> Iterator[dict[str, str]]:
    """A life that ends at a random moment; in a quarter of the cases possibly before the victim is ready."""
    doing = {"what": "starting"}
    victim.start()
    if chance.random() < 0.75:
        victim.wait()
        doing["what"] = "counting"
    timer = threading.Timer(chance.uniform(0, longest), victim.kill)
    timer.start()
    try:
        yield doing
    finally:
        timer.join()
        victim.stop()
    findings.kills += 1
    findings.killed_while[doing["what"]] += 1


def _one_life(victim: Victim, ledger: Ledger, findings: Findings, chance: random.Random, parcels: int) -> None:
    began = time.monotonic()
    with _doomed(victim, findings, chance, 0.15) as doing:
        while not victim.is_dead:
            _deliver(victim, ledger, findings, ledger.next_parcels(chance.randint(1, parcels)))
            if not victim.is_dead:
                doing["what"] = "counting"
            assert time.monotonic() - began < _STALLED_SECONDS


def _deliver(victim: Victim, ledger: Ledger, findings: Findings, parcels: list[Parcel]) -> None:
    answers = victim.deliver(parcels)
    findings.answers.update(outcome for _, outcome in answers)
    ledger.record(answers)


def _close(victim: Victim, ledger: Ledger, findings: Findings, chance: random.Random) -> None:
    """Deliver the rest undisturbed, then close the epoch; the first attempt to close it is killed."""
    victim.start()
    began = time.monotonic()
    while not ledger.is_quiet:
        _deliver(victim, ledger, findings, ledger.next_parcels(0, fresh=False))
        assert time.monotonic() - began < _STALLED_SECONDS
    victim.stop()
    with _doomed(victim, findings, chance, 0.03) as doing:
        doing["what"] = "closing"
        victim.close_epoch(ledger.epoch)
    victim.start()
    while not victim.close_epoch(ledger.epoch):
        assert time.monotonic() - began < _STALLED_SECONDS
    late = [("", "error")]
    while "error" in {outcome for _, outcome in late}:
        late = victim.deliver(ledger.some_acknowledged(20))
        findings.answers.update(outcome for _, outcome in late)
        assert time.monotonic() - began < _STALLED_SECONDS
    if {outcome for _, outcome in late} != {"closed"}:
        findings.differences.append(f"a closed epoch answers {Counter(outcome for _, outcome in late)}")
    victim.stop()


def _verify(store: object, ledger: Ledger, findings: Findings) -> None:
    findings.epochs += 1
    findings.acknowledged += ledger.acknowledged
    findings.duplicates += ledger.duplicates
    difference = ledger.difference(store)
    if difference:
        findings.differences.append(f"epoch {findings.epochs}: {difference}")
    if store.identity_count(ledger.epoch):
        findings.differences.append(f"epoch {findings.epochs}: {store.identity_count(ledger.epoch)} ids are left")
