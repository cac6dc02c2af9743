"""`sunzi serve` in a subprocess."""

import os
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def serving(directory, *options, **environment):
    """`sunzi serve` in a subprocess; yields its address."""
    with serving_process(directory, *options, **environment) as (_, address):
        yield address


@contextmanager
def serving_process(directory, *options, before="", **environment):
    """`sunzi serve` in a subprocess; yields the process and its address. `before` is Python that runs first in it."""
    program = f"import sys\n{before}\nfrom sunzi.cli.main import main\nsys.exit(main())"
    command = [sys.executable, "-c", program, "serve", *options, "--port", "0"]
    process = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("collecting at "):
                break
        else:
            raise AssertionError("".join(lines))
        yield process, line.split()[2].rstrip(";")
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()
