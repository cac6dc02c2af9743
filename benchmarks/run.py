"""Run benchmarks and print what they found: scripts/bench [NAME...] [--json FILE] [--markdown FILE]."""

from __future__ import annotations

import argparse
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

# Run as a file, so that the project's directory, not this one, is where the package is found.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.catalogue import BENCHMARKS
from benchmarks.children import UnavailableError
from benchmarks.markdown import write_into
from benchmarks.results import Result, load, save, table


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="scripts/bench", description="Ratios against peers and references, each in one run on one core."
    )
    made.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(BENCHMARKS)}; all by default"
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results as a list")
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write them into the marked part of a page")
    made.add_argument(
        "--from", type=Path, metavar="FILE", dest="source", help="read results written by --json; run none"
    )
    made.add_argument("--scale", type=float, default=1.0, help="less than 1: smaller and rougher, to try things out")
    made.add_argument("--check", action="store_true", help="exit with status 1 if a bound does not hold")
    return made


def run(names: Sequence[str], scale: float) -> tuple[list[Result], list[str]]:
    """The results of the named benchmarks and the names of those that broke down, with progress if somebody watches.

    Of several each has a process of its own, so that none finds caches and memory as another one left them.
    """
    results: list[Result] = []
    broken: list[str] = []
    for position, name in enumerate(names, start=1):
        _progress(f"[{position}/{len(names)}] {name} …" if len(names) > 1 else f"{name} …")
        found, ended_well = run_one(name, scale) if len(names) == 1 else _run_apart(name, scale)
        results += found
        if not ended_well:  # what the others find, in half an hour, is worth keeping
            broken.append(name)
    _progress("")
    return results, broken


def run_one(name: str, scale: float) -> tuple[list[Result], bool]:
    """What a benchmark found, and whether it came to its end."""
    results: list[Result] = []
    try:
        for result in BENCHMARKS[name](scale):
            results.append(result)
            _progress(result.name)
    except UnavailableError as error:
        _progress("")
        print(f"{name} was left out: {error}", file=sys.stderr)
    except Exception:
        _progress("")
        traceback.print_exc()
        return results, False
    return results, True


def _run_apart(name: str, scale: float) -> tuple[list[Result], bool]:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "results.json"
        command = [sys.executable, __file__, name, "--scale", repr(scale), "--json", str(file)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode < 0:
            print(f"{name} was ended by signal {-done.returncode}", file=sys.stderr)
        return load(file) if file.exists() else [], done.returncode == 0


def _progress(text: str) -> None:
    """One line that rewrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and write what was asked for."""
    options = parser().parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser().error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    results, broken = (
        (load(options.source), []) if options.source else run(options.names or list(BENCHMARKS), options.scale)
    )
    print(table(results))
    if options.scale < 1:
        print("The bounds are meant for --scale 1.")
    for name in broken:
        print(f"{name} broke down; see above.")
    if options.json:
        save(results, options.json)
    if options.markdown:
        write_into(options.markdown, results)
    missed = any(result.holds is False for result in results)
    return int(bool(broken) or (options.check and missed))


if __name__ == "__main__":
    sys.exit(main())
