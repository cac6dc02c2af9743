"""Tables of reports with known tallies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sunzi.plan import Plan

COUNTRIES = ("DE", "FR", None)


def reports_of(plan: Plan, users: int, seed: int = 3) -> list[bytes]:
    """Reports of users whose values cover the domain."""
    values = np.random.default_rng(seed).integers(0, plan.domain.size, users)
    return plan.client(seed=seed).reports(values)


def table_of(reports: Sequence[bytes | None], **columns: Any) -> pa.Table:
    """A table with a number, an id and a country for each report."""
    count = len(reports)
    made = {
        "report": pa.array(reports, pa.binary()),
        "id": pa.array([number.to_bytes(16, "big") for number in range(count)], pa.binary()),
        "country": pa.array([COUNTRIES[number % 3] for number in range(count)], pa.string()),
        "version": pa.array([number % 4 for number in range(count)], pa.int32()),
    }
    return pa.table(made | columns)


def write(table: pa.Table, folder: Path, files: int = 3, row_group_size: int = 500) -> str:
    """Write the table to several files, with rows dealt out in order."""
    folder.mkdir(parents=True)
    size = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * size, size), folder / f"{number}.parquet", row_group_size=row_group_size)
    return str(folder)
