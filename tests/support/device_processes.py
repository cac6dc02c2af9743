"""Other processes that use a device's file: they queue values on command and print their payments."""

import subprocess
import sys
from fractions import Fraction

_PROGRAM = """
import sys
import sunzi
from sunzi.client import Device

path, cap, values = sys.argv[1], sys.argv[2], [int(value) for value in sys.argv[3].split(",")]
there = "https://collector.example/v1/collections/browsers/epochs/1"
plan = sunzi.make_plan("grr", 100, 1)
device = Device(path, cap, max_epsilon=1, when_spent="refuse")
assert device.enable()
print("ready", flush=True)
sys.stdin.readline()
for value in values:
    queued = device.queue(plan, "browser", value, there, several=True)
    print("paid" if queued.outcome == "queued" else queued.outcome, queued.cost, flush=True)
"""


class Process:
    """One process that has the device open."""

    def __init__(self, path, cap, values):
        program = [sys.executable, "-c", _PROGRAM, str(path), str(cap), ",".join(map(str, values))]
        self._child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._child.stdout.readline() == "ready\n"

    def go(self):
        self._child.stdin.write("go\n")
        self._child.stdin.flush()

    def next_payment(self):
        """The next printed line."""
        return self._child.stdout.readline()

    def kill(self):
        """Kill it as with kill -9; return the payments printed before."""
        self._child.kill()
        return self.end()

    def end(self):
        """Wait for its end and return the printed payments."""
        output, _ = self._child.communicate(timeout=120)
        return [Fraction(line.split()[1]) for line in output.splitlines() if line.startswith("paid")]
