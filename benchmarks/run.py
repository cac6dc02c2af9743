"""Run benchmarks and print their results: scripts/bench [NAME...] [--json FILE] [--markdown FILE]."""

from __future__ import annotations

import argparse
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

# When run as a script, the path starts with this directory; the package is found from the project's directory.
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
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results as a JSON list")
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write the results between the marks of a page")
    made.add_argument(
        "--from",
        type=Path,
        metavar="FILE",
        dest="source",
        help="read results written by --json instead of running benchmarks",
    )
    made.add_argument(
        "--scale", type=float, default=1.0, help="below 1: smaller sizes and rough figures, for a quick trial"
    )
    made.add_argument("--check", action="store_true", help="exit with status 1 if a bound does not hold")
    return made


def run(names: Sequence[str], scale: float) -> tuple[list[Result], list[str]]:
    """Results of the named benchmarks and names of those that failed; shows progress on a terminal.

    If there are several, each runs in its own process, so that none starts with caches and memory left by another.
    """
    results: list[Result] = []
    broken: list[str] = []
    for position, name in enumerate(names, start=1):
        _progress(f"[{position}/{len(names)}] {name} …" if len(names) > 1 else f"{name} …")
        found, ended_well = run_one(name, scale) if len(names) == 1 else _run_apart(name, scale)
        results += found
        if not ended_well:  # keep half an hour of other results
            broken.append(name)
    _progress("")
    return results, broken


def run_one(name: str, scale: float) -> tuple[list[Result], bool]:
    """Results of one benchmark, and whether it finished."""
    results: list[Result] = []
    try:
        for result in BENCHMARKS[name](scale):
            results.append(result)
            _progress(result.name)
    except UnavailableError as error:
        _progress("")
        print(f"{name} was skipped: {error}", file=sys.stderr)
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
            print(f"{name} was killed by signal {-done.returncode}", file=sys.stderr)
        return load(file) if file.exists() else [], done.returncode == 0


def _progress(text: str) -> None:
    """Rewrite one status line; only on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks, print the results and write the requested files."""
    options = parser().parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser().error(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}")
    results, broken = (
        (load(options.source), []) if options.source else run(options.names or list(BENCHMARKS), options.scale)
    )
    print(table(results))
    if options.scale < 1:
        print("The bounds apply to --scale 1 only.")
    for name in broken:
        print(f"{name} failed; see above.")
    if options.json:
        save(results, options.json)
    if options.markdown:
        write_into(options.markdown, results)
    missed = any(result.holds is False for result in results)
    return int(bool(broken) or (options.check and missed))


if __name__ == "__main__":
    sys.exit(main())
