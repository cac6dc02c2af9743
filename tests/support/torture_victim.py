"""A minimal collector to be killed: it reads parcels and prints outcomes, one per line.

It answers a line only after the store's writer has delivered the outcome. ``close KEY`` closes an epoch. A careless
collector answers at once, which torture must detect.

    python torture_victim.py

imports everything and then forks a collector for every request on its standard input, a socket: the arguments of
:func:`main` come with the collector's standard input and output, and its process id is sent back. So a collector that
is killed early dies while it opens its store, not while Python imports numpy.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

from ledger import Parcel

from sunzi.client.errors import StoreError
from sunzi.collector.epochs import Outcome
from sunzi.collector.stores import open_store
from sunzi.collector.writer import OverloadError, Result, Writer

_speaking = threading.Lock()


def say(text: str) -> None:
    """Write everything at once, bypassing this process's buffers."""
    data = text.encode()
    with _speaking:
        while data:
            data = data[os.write(1, data) :]


def deliver(results: list[tuple[str, Result]]) -> None:
    say("".join(f"{ticket} {result.value if isinstance(result, Outcome) else 'error'}\n" for ticket, result in results))


def main(address: str, careless: str = "") -> None:
    store = open_store(address, create=False)
    writer: Writer[str] = Writer(store, (lambda _: None) if careless else deliver, settle_seconds=0.05)
    say("ready\n")
    for line in sys.stdin:
        try:
            if line.startswith("close "):
                store.close_epoch(int(line.split()[1]))
                say("close closed\n")
            else:
                parcel = Parcel.from_line(line)
                writer.submit(parcel.deposit(), parcel.identity.hex())
                if careless:
                    say(f"{parcel.identity.hex()} repeated\n")
        except OverloadError:
            say(f"{line.split()[1]} overload\n")
        except StoreError:
            say("close error\n")
    writer.close()
    store.close()


def fork_collectors(requests: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies: the requester watches the processes
    while True:
        arguments, descriptors, *_ = socket.recv_fds(requests, 4096, 2)
        if not arguments:
            return
        child = os.fork()
        if child == 0:
            requests.close()
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            main(*arguments.decode().split("\n"))
            return
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(str(child).encode())


if __name__ == "__main__":
    fork_collectors(socket.socket(fileno=os.dup(0)))
