"""`sunzi serve` in a subprocess."""

import os
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def serving(directory, *options, **environment):
    """`sunzi serve` in a subprocess; yields its address."""
    command = [sys.executable, "-m", "sunzi", "serve", *options, "--port", "0"]
    process = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("collecting at "):
                break
        else:
            raise AssertionError("".join(lines))
        yield line.split()[2].rstrip(";")
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()
