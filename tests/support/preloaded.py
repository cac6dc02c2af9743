"""Python processes that start at once, forked from one that has imported the library.

Each has its own streams, directory, environment and exit status, as any process; only its imports are done already,
and what should be random is the same in every run.
tests/cli/test_startup.py and tests/test_no_extras.py start theirs from nothing.

python preloaded.py ADDRESS
"""

import contextlib
import gc
import importlib
import marshal
import os
import random
import runpy
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path

from repeatable import fixed_words

import sunzi

PRELOADED = (
    *("matplotlib.figure", "matplotlib.font_manager", "scipy.optimize", "pandas"),
    *(
        "sunzi.plan",
        "sunzi.display.plotting",
        "sunzi.results.trends",
        "sunzi.tables",
        "sunzi.analysis.attack",
        "sunzi.collector.server",
    ),
    *("sunzi.planning.comparison", "sunzi.planning.recommendation", "sunzi.cli.estimate", "sunzi.cli.plan"),
)
_EXECUTABLE = """\
#!{python} -IS
import marshal, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"-"], [0, 1, 2])
    server.sendall(marshal.dumps(({first!r} + sys.argv[1:], os.getcwd(), dict(os.environ))))
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(3)))
"""


@contextlib.contextmanager
def preloaded() -> Iterator[Path]:
    """Yield a directory with the programs ``python`` and ``sunzi``, whose processes have the imports done."""
    environment = os.environ | {"PYTHONPATH": str(Path(sunzi.__file__).parents[1])}
    with tempfile.TemporaryDirectory() as directory:
        address = f"{directory}/socket"
        for name, first in (("python", []), ("sunzi", ["-m", "sunzi"])):
            program = Path(directory, name)
            program.write_text(_EXECUTABLE.format(python=sys.executable, address=address, first=first))
            program.chmod(0o755)
        with subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE, env=environment) as server:
            try:
                assert server.stdout.read(1) == b"."
                yield Path(directory)
            finally:
                server.terminate()


def main(address: str) -> None:
    """Fork a process per request."""
    for name in PRELOADED:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        gc.freeze()  # otherwise each process would copy all memory to look for garbage
        os.write(1, b".")
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                break
            connection.close()
            while os.waitpid(-1, os.WNOHANG)[0]:  # those that have ended
                pass
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as request:
        arguments, directory, environment = marshal.loads(request.read())
    child = os.fork()
    if child != 0:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(status if status >= 0 else 128 - status).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    run(*arguments)


def run(kind: str, *arguments: str) -> None:
    """What ``python`` does with these arguments: ``-c CODE``, ``-m MODULE …`` or ``FILE …``."""
    random.seed(1)
    with fixed_words():
        start(kind, *arguments)


def start(kind: str, *arguments: str) -> None:
    """Run the code, module or file."""
    if kind == "-c":
        sys.argv = ["-c", *arguments[1:]]
        sys.path[0] = ""
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        exec(compile(arguments[0], "<string>", "exec"), vars(module))
    elif kind == "-m":
        sys.argv = list(arguments)
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *arguments]
        sys.path[0] = str(Path(kind).resolve().parent)
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
