"""Processes that work side by side and never outlive what they work for."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any


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
    with _Pool(number, mp_context=context, initializer=_end_when_told, initargs=(told,)) as pool:
        try:
            yield pool
        except BaseException:
            telling.close()  # work in progress is of no use any more, and might take minutes
            raise


class _Pool(ProcessPoolExecutor):
    """Signals wait for its locks: a handler that raises between taking one and letting it go would leave it taken, and
    the pool's own threads, which shutting down waits for, would wait for it for ever.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        with _undisturbed():
            return super().submit(function, *arguments, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with _undisturbed():
            super().shutdown(wait, cancel_futures=cancel_futures)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Handlers of signals that come meanwhile run afterwards. In Python they run in the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[Callable[[], Any]] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    own = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number, handler in own.items():
        signal.signal(number, lambda *terms, handler=handler: came.append(partial(handler, *terms)))
    try:
        yield
    finally:
        for number, handler in own.items():
            signal.signal(number, handler)
        for handle in came:
            handle()


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
