"""Processes that work side by side and never outlive what they work for."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait


def number_of_cores() -> int:
    """The cores that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def pool_of_processes(number: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end when this process does, however it ends, and at once if the block fails.

    They are spawned, not forked: a fork would copy the locks of other threads in whatever state they are. So a script
    that gets here does so under ``if __name__ == "__main__":``.
    """
    context = multiprocessing.get_context("spawn")
    told, telling = context.Pipe(duplex=False)
    with ProcessPoolExecutor(number, mp_context=context, initializer=_end_when_told, initargs=(told,)) as pool:
        try:
            yield pool
        except BaseException:
            telling.close()  # work in progress is of no use any more, and might take minutes
            raise


def _end_when_told(told: Connection) -> None:
    """In a worker: wait for the end of the pipe's other side, or of the parent.

    A keyboard's interrupt reaches every process of the terminal; the parent alone deals with it, and ends the workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([told, parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
