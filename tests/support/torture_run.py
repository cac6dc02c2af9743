"""Long versions of tests, for scripts/torture; each section about durability writes its figures to a JSON file."""

from __future__ import annotations

import argparse
import fcntl
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "collector"))

from postgres_servers import running_server
from restarting import fill, restart
from soaking import growth_kilobytes, start_soak
from test_power_cuts import Life
from torturing import Collector, CollectorOfServer, Findings, torture

from sunzi.collector.stores import open_store

ROOT = Path(__file__).resolve().parents[2]
MARK = "<!-- measured: written by scripts/torture --markdown, do not edit by hand -->\n"

Section = Callable[[argparse.Namespace, Path], dict[str, Any]]


def _figures(findings: Findings, began: float) -> dict[str, Any]:
    return {
        "kills": findings.kills,
        "epochs": findings.epochs,
        "acknowledged_deposits": findings.acknowledged,
        "duplicates_sent": findings.duplicates,
        "answers": dict(sorted(findings.answers.items())),
        "killed_while": dict(sorted(findings.killed_while.items())),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "differences": findings.differences,
    }


def kill_sqlite(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Kill the collector on an SQLite file."""
    address, began = str(directory / "store.db"), time.monotonic()
    return _figures(torture(Collector(address), address, options.kills, kills_per_epoch=25, seed=options.seed), began)


def kill_postgres(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    """Kill the collector on a PostgreSQL database."""
    with running_server() as server:
        address, began = server.fresh_address(), time.monotonic()
        return _figures(
            torture(Collector(address), address, options.kills, kills_per_epoch=25, seed=options.seed), began
        )


def kill_server(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    """Kill and restart PostgreSQL while the collector keeps running."""
    with running_server() as server:
        address, began = server.fresh_address(), time.monotonic()
        victim = CollectorOfServer(address, server)
        try:
            return _figures(torture(victim, address, options.kills, kills_per_epoch=25, seed=options.seed), began)
        finally:
            victim.end()


def cut_power(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Cut the power below SQLite, ten times as often as kills."""
    cuts, acknowledged, epochs, differences = 0, 0, 0, []
    chance = random.Random(options.seed)
    while cuts < 10 * options.kills:
        life = Life(directory / str(cuts), chance.getrandbits(32))
        try:
            life.endure(500)
            difference = life.final_difference()
        except AssertionError as error:
            difference = {"error": str(error)}
        if difference:
            differences.append(str(difference))
        cuts, acknowledged, epochs = cuts + 500, acknowledged + life.acknowledged, epochs + life.epochs
    return {"cuts": cuts, "epochs": epochs, "acknowledged_deposits": acknowledged, "differences": differences}


def _restart(address: str, number: int) -> dict[str, Any]:
    store = open_store(address)
    key = fill(store, number)
    store.close()
    found = restart(address, key, number)
    store = open_store(address)
    began = time.monotonic()
    store.close_epoch(key)
    closing = time.monotonic() - began
    store.close()
    right = found["outcomes"] == ["repeated", "counted"]
    return {
        "ids": number,
        "seconds_to_first_commit": round(found["seconds"], 2),
        "peak_megabytes": round(found["peak_kilobytes"] / 1024),
        "seconds_to_close_the_epoch": round(closing, 1),
        "differences": [] if right else [str(found["outcomes"])],
    }


def restart_sqlite(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Start with millions of ids."""
    return _restart(str(directory / "store.db"), options.ids)


def restart_postgres(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    """Start with millions of ids; the measured memory is the collector's, not the database server's."""
    with running_server({"max_wal_size": "4GB"}) as server:
        return _restart(server.fresh_address(), options.ids)


def _soak(address: str, minutes: float) -> dict[str, Any]:
    with start_soak(address, 60 * minutes, 60.0, 1000.0) as child:
        printed, _ = child.communicate()
    found = json.loads(printed)
    samples = found["resident_kilobytes"]
    growth = growth_kilobytes(samples)
    fine = growth < 4096 and found["ids_left"] == 0 and "error" not in found["outcomes"]
    return {
        "minutes": minutes,
        "outcomes": found["outcomes"],
        "epochs": found["epochs"],
        "megabytes_at_the_end": round(samples[-1] / 1024, 1),
        "growth_kilobytes": growth,
        "differences": [] if fine else [f"grew by {growth} KiB, {found['ids_left']} ids left, {found['outcomes']}"],
    }


def soak_sqlite(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Steady load; memory must not grow."""
    return _soak(str(directory / "store.db"), options.minutes)


def soak_postgres(options: argparse.Namespace, _: Path) -> dict[str, Any]:
    """Steady load on PostgreSQL."""
    with running_server() as server:
        return _soak(server.fresh_address(), options.minutes)


def attack(_: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Attacks on memory, processor time, connections and files, with the bounds of the benchmarks."""
    names, path = ("collector-resources", "collector-connections", "collector-epochs"), directory / "attacks.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *names, "--json", str(path)]
    done = subprocess.run(command, cwd=ROOT, check=False)
    found = {each["name"].removeprefix("collector/"): each for each in json.loads(path.read_text())}
    memory = [each["details"]["bytes"] for name, each in found.items() if name.endswith("-memory")]
    missed = [f"{name}: {each['ratio']:.2f}" for name, each in found.items() if not each["holds"]]
    attacks = [name.removesuffix("-memory") for name in found if name.endswith("-memory")]
    goodput = [each["ratio"] for name, each in found.items() if name.endswith(("-256", "-1024"))]
    return {
        "delays": {name: round(found[name]["ratio"], 1) for name in attacks},
        "peak_megabytes": round(max(memory) / (1 << 20)),
        "worst_goodput": round(min(goodput), 2),
        "seconds_to_start": round(found["epochs"]["details"]["seconds"], 2),
        "differences": missed + (["a benchmark failed"] if done.returncode else []),
    }


def _long_test(*arguments: str) -> Section:
    """Tests with ``--long``."""

    def section(_: argparse.Namespace, __: Path) -> dict[str, Any]:
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--long", *arguments], cwd=ROOT, check=False)
        return {"differences": [f"pytest --long {' '.join(arguments)} failed"] if done.returncode else []}

    return section


def sweep_coverage(_: argparse.Namespace, __: Path) -> dict[str, Any]:
    """Modular intervals over a grid of settings."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "support" / "coverage_sweep.py")], cwd=ROOT, check=False
    )
    return {"differences": ["a setting holds in fewer than 94 % of the runs"] if done.returncode else []}


LONG_TESTS = {
    "coverage": _long_test("tests/proof/test_coverage.py"),
    "coverage-sweep": sweep_coverage,
    "requests": _long_test("tests/collector/test_openapi.py"),
    "damage": _long_test("tests/collector/test_damage.py", "tests/client/device/test_damage.py"),
    "more-settings": _long_test("tests", "-m", "long", "--ignore", "tests/proof/test_coverage.py"),
}
"""Sections without figures, which are not in the table of docs/durability.md."""

SECTIONS: dict[str, Section] = {
    "kill-sqlite": kill_sqlite,
    "kill-postgres": kill_postgres,
    "kill-server": kill_server,
    "cut-power": cut_power,
    "restart-sqlite": restart_sqlite,
    "restart-postgres": restart_postgres,
    "soak-sqlite": soak_sqlite,
    "soak-postgres": soak_postgres,
    "attacks": attack,
    **LONG_TESTS,
}


def _keep(path: Path, name: str, figures: dict[str, Any]) -> None:
    """Add a section's figures to the file; several runs may do so at once."""
    with open(path, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        kept = json.loads(file.read() or "{}")
        kept[name] = figures
        file.truncate(0)
        file.write(json.dumps({key: kept[key] for key in SECTIONS if key in kept}, indent=2) + "\n")


def table(figures: dict[str, Any]) -> str:
    """The table in docs/durability.md."""
    lines = ["| section | what was done | found |", "|---|---|---|"]
    for name, section in figures.items():
        done = "; ".join(_phrases(section))
        wrong = "; ".join(section["differences"]) or "no difference"
        lines.append(f"| `{name}` | {done} | {wrong} |")
    return "\n".join(lines) + "\n"


def _phrases(section: dict[str, Any]) -> list[str]:
    """Counts and measurements of one section, as phrases."""
    answers = section.get("answers", section.get("outcomes", {}))
    named = {
        "worst_goodput": "256 and 1,024 connections count at least {} times as much as 16",
        "seconds_to_start": "1,000 epochs start in {} s",
        "kills": "{:,} kills",
        "cuts": "{:,} power cuts",
        "ids": "{:,} ids",
        "epochs": "{:,} epochs",
        "acknowledged_deposits": "{:,} deposits acknowledged",
        "duplicates_sent": "{:,} duplicates sent",
        "seconds_to_first_commit": "first commit {} s after the start",
        "peak_megabytes": "{} MiB at most",
        "seconds_to_close_the_epoch": "epoch closed in {} s",
        "megabytes_at_the_end": "{} MiB at the end",
        "growth_kilobytes": "{} KiB more in the last third than in the second",
        "minutes": "{} minutes",
    }
    delays = [f"{ratio} ({attack.replace('-', ' ')})" for attack, ratio in section.get("delays", {}).items()]
    delayed = [f"99 of 100 honest reports take {', '.join(delays)} times as long"] if delays else []
    counted = delayed + [phrase.format(section[key]) for key, phrase in named.items() if key in section]
    killed = [f"{number:,} while {moment}" for moment, number in section.get("killed_while", {}).items()]
    answered = [f"{number:,} × {answer}" for answer, number in sorted(answers.items())]
    return counted + ([", ".join(killed)] if killed else []) + ([", ".join(answered)] if answered else [])


def write_table(page: Path, figures: dict[str, Any]) -> None:
    """Replace everything after the mark on a page."""
    before, mark, _ = page.read_text().partition(MARK)
    page.write_text(before + mark + "\n" + table(figures))


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"all, none, or some of: {', '.join(SECTIONS)}")
    parser.add_argument("--kills", type=int, default=1000, help="kills per section; ten times as many power cuts")
    parser.add_argument("--minutes", type=float, default=30.0, help="length of a soak run")
    parser.add_argument("--ids", type=int, default=10_000_000, help="number of ids in the store before a start")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything random, except the moments of kills")
    parser.add_argument("--json", type=Path, help="write the figures to this file and keep its other sections")
    parser.add_argument("--markdown", type=Path, help="write a table of the figures in --json at the end of this page")
    options = parser.parse_args()
    unknown = set(options.sections) - SECTIONS.keys() - {"none"}
    if unknown:
        parser.error(f"unknown section {', '.join(sorted(unknown))}")
    failures = 0
    for name in [] if options.sections == ["none"] else options.sections or SECTIONS:
        with tempfile.TemporaryDirectory(prefix="sunzi-torture-") as directory:
            figures = SECTIONS[name](options, Path(directory))
        print(f"{name}: {json.dumps(figures)}", flush=True)
        failures += bool(figures["differences"])
        if options.json and name not in LONG_TESTS:
            _keep(options.json, name, figures)
    if options.json and options.markdown:
        write_table(options.markdown, json.loads(options.json.read_text()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
