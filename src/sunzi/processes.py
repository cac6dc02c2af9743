"""A pool of worker processes that never outlive their parent."""

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
    """The number of cores that this process may use, possibly fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def pool_of_processes(number: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose workers exit when this process ends, even by SIGKILL, and at once if the block fails.

    Workers are spawned, not forked, since a fork copies the locks of other threads in their current state. So call it
    under ``if __name__ == "__main__":``.
    """
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    with _Pool(number, mp_context=context, initializer=_exit_with_parent, initargs=(reader,)) as pool:
        try:
            yield pool
        except BaseException:
            writer.close()  # workers exit now instead of finishing their tasks, which might take minutes
            raise


class _Pool(ProcessPoolExecutor):
    """Defers signal handlers while the pool holds its locks. A handler that raises there would leave a lock taken, and
    shutting down would wait for it forever.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        with deferred_signals():
            return super().submit(function, *arguments, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with deferred_signals():
            super().shutdown(wait, cancel_futures=cancel_futures)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Run Python's handlers of SIGINT and SIGTERM after the block. They run in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deferred: list[Callable[[], Any]] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    own = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number, handler in own.items():
        signal.signal(number, lambda *arguments, handler=handler: deferred.append(partial(handler, *arguments)))
    try:
        yield
    finally:
        for number, handler in own.items():
            signal.signal(number, handler)
        for handle in deferred:
            handle()


def _exit_with_parent(reader: Connection) -> None:
    """In a worker: exit when the parent closes its end of the pipe or ends itself.

    An interrupt from the keyboard reaches all processes of the terminal; workers leave it to the parent, which ends
    them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([reader, parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
