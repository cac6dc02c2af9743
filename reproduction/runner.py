"""Run experiments on all cores; a run that was killed resumes where it stopped.

Every finished cell is one file in the work directory, written atomically, named by the hash of its parameters and
marked with the version of Sunzi that measured it. A run measures the cells without a file of its own version; killing
it loses only the cells in progress.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sunzi import __version__
from sunzi._typing import Progress
from sunzi.atomic_files import write_atomically
from sunzi.processes import number_of_cores, pool_of_processes

from . import catalogue
from .experiment import Cell, Experiment, Row, Scale
from .figures import house_style, save_pictures
from .report import write_report
from .table import Table
from .threads import single_threaded


@dataclass(frozen=True)
class Places:
    """Where a run writes."""

    root: Path

    @property
    def results(self) -> Path:
        """Tables and pictures."""
        return self.root / "results"

    @property
    def work(self) -> Path:
        """Finished cells."""
        return self.root / "work"

    def prepare(self) -> None:
        """Create the directories; git ignores finished cells."""
        self.results.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(exist_ok=True)
        write_atomically(self.work / ".gitignore", b"*\n")


def run(
    experiments: Sequence[Experiment],
    scale: Scale,
    root: Path,
    *,
    seed: int = 1,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Measure the missing cells, then write tables, pictures and the report."""
    places = Places(root)
    places.prepare()
    measure(experiments, scale, places.work, seed=seed, jobs=jobs, progress=progress)
    for experiment in experiments:
        collect(experiment, scale, places.work, seed).save(places.results / f"{experiment.name}.csv")
    draw(experiments, places.results)
    write_report([catalogue.find(name) for name in catalogue.NAMES], root)


def draw(experiments: Sequence[Experiment], results: Path) -> None:
    """Draw pictures from the tables on disk, so that picture and table agree; also narrow ones, for phones."""
    for experiment in experiments:
        for narrow in (False, True):
            draw_one(experiment, results, narrow=narrow)


def draw_one(experiment: Experiment, results: Path, *, narrow: bool) -> None:
    """Draw the picture of one experiment."""
    with house_style(narrow=narrow):
        picture = experiment.draw(Table.load(results / f"{experiment.name}.csv"))
        save_pictures(picture, results / experiment.name)


@dataclass(frozen=True)
class _Task:
    experiment: Experiment
    cell: Cell
    key: str


def measure(
    experiments: Sequence[Experiment],
    scale: Scale,
    work: Path,
    *,
    seed: int,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Measure all cells that have no file in the work directory: the costly ones first, timed ones last and alone."""
    tasks = {
        experiment.key(cell, seed): _Task(experiment, cell, experiment.key(cell, seed))
        for experiment in experiments
        for cell in experiment.cells(scale)
    }
    missing = sorted(
        (task for task in tasks.values() if _load(work, task.key) is None), key=lambda task: -task.cell.cost
    )
    total, done = sum(task.cell.cost for task in missing), 0.0
    side_by_side = [task for task in missing if not task.experiment.alone]
    timed = [task for task in missing if task.experiment.alone]
    workers = min(jobs or number_of_cores(), max(len(side_by_side), 1))
    for group, number in ((side_by_side, workers), (timed, 1)):
        for task in _finished(group, number, work, seed):
            done += task.cell.cost
            if progress is not None:
                progress(done / total)


def _finished(tasks: Sequence[_Task], workers: int, work: Path, seed: int) -> Iterator[_Task]:
    """Tasks in the order in which they finish."""
    if workers == 1:
        for task in tasks:
            _measure(task.experiment.name, task.cell, task.key, work, seed)
            yield task
        return
    with single_threaded(), pool_of_processes(workers) as pool:
        pending: dict[Future[None], _Task] = {
            pool.submit(_measure, task.experiment.name, task.cell, task.key, work, seed): task for task in tasks
        }
        while pending:
            ended, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in ended:
                future.result()
                yield pending.pop(future)


def _measure(name: str, cell: Cell, key: str, work: Path, seed: int) -> None:
    start = time.perf_counter()
    rows = catalogue.find(name).measure(cell, seed)
    entry = {
        "parameters": cell.parameters,
        "seed": seed,
        "sunzi": __version__,
        "rows": rows,
        "seconds": round(time.perf_counter() - start, 3),
    }
    write_atomically(work / f"{key}.json", json.dumps(entry).encode())


def _load(work: Path, key: str) -> dict[str, Any] | None:
    """A finished cell; None if it cannot be read or another version of Sunzi measured it."""
    try:
        entry: dict[str, Any] = json.loads((work / f"{key}.json").read_bytes())
    except (OSError, ValueError):
        return None
    return entry if "rows" in entry and entry.get("sunzi") == __version__ else None


def collect(experiment: Experiment, scale: Scale, work: Path, seed: int) -> Table:
    """The rows of all cells, in the experiment's own order, each with its cell's parameters."""
    rows: list[Row] = []
    for cell in experiment.cells(scale):
        entry = _load(work, experiment.key(cell, seed))
        assert entry is not None, "every cell was measured before"
        for row in entry["rows"]:
            terms = {name: _flat(value) for name, value in cell.parameters}
            whole = {"scale": scale, "seed": seed, "sunzi": entry["sunzi"], **terms, **row}
            rows.append({name: whole.get(name) for name in experiment.columns} if experiment.columns else whole)
    return Table(rows)


def _flat(value: Any) -> Any:
    """A tuple as text for a CSV file."""
    return ";".join(str(item) for item in value) if isinstance(value, (tuple, list)) else value
