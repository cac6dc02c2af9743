"""``sunzi privatize``: one column of a table becomes a file of reports, one report per row.

As Parquet, public columns may be kept with the reports.

Rows are read, randomised by the operating system's generator and written piece by piece, as consecutive batches, so
that memory is bounded for tables of any length.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sunzi.cli.files import (
    STANDARD,
    add_by,
    add_column,
    add_force,
    add_labels,
    add_plan,
    check_order,
    check_paths,
    columns_by,
    input_name,
    load_labelled_plan,
    open_output,
)
from sunzi.cli.results import say_written
from sunzi.cli.terminal import ProgressBar, say
from sunzi.client.errors import DomainError, ParameterError
from sunzi.formatting import bits_in_words, counted

if TYPE_CHECKING:
    from sunzi._typing import Integers
    from sunzi.batch_client import BatchClient
    from sunzi.plan import Plan
    from sunzi.tables.column_rows import Column, Rows
    from sunzi.tables.index_lookup import Lookup

_MOST_WORDS = 1 << 22
_MOST_BITS = 1 << 26


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``privatize``, and add its arguments."""
    parser.description = (
        "Turn one column of a table into reports, one report per row, with the operating system's randomness. Every "
        "row must have a value: a missing one (null, or empty text that is not a label) is reported as the domain's "
        "'other' if it has one and is an error otherwise, because not reporting would reveal that it is missing."
    )
    add_plan(parser)
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="a .csv, .tsv, .jsonl, .txt, .parquet, .arrow or .feather file; text may be compressed (.csv.gz); - is "
        "CSV on standard input. CSV is UTF-8 and begins with a line of column names, .jsonl has an object per line, "
        ".txt a value per line. Parquet, Arrow and Feather need the extra 'frames'",
    )
    add_column(
        parser,
        "the column that holds the values, or the key in .jsonl; may be omitted if there is only one",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write the reports (default: standard output, for a pipe); a name that ends in .parquet makes a "
        "table with one report per row, in the column 'report' (extra 'frames')",
    )
    add_force(parser)
    add_by(
        parser,
        "keep this column with the reports, as text, for 'sunzi tally --by'; needs -o FILE.parquet. These columns "
        "are public: they are written as they are, and epsilon does not protect them",
    )
    add_labels(parser)
    parser.add_argument("--max-epsilon", metavar="E", help="refuse a plan that spends more than this: 2, 0.5 or 1/2")
    parser.add_argument(
        "--skip-missing",
        action="store_true",
        help="leave out rows without a value; this reveals whose value is missing to anyone who sees which rows "
        "reported, and epsilon does not cover that",
    )
    parser.add_argument(
        "--fold",
        metavar="WHAT",
        help="find labels also where a text differs by case, space (at the ends or repeated), or case,space",
    )
    parser.add_argument(
        "--max-unknown",
        metavar="SHARE",
        type=float,
        default="0.5",
        help="refuse the table if more than this share of its values is unknown and would be reported as the domain's "
        "'other'; 1 allows all (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, randomise, write."""
    from sunzi.client.reports import BATCH_MAGIC
    from sunzi.tables.report_files import write_reports
    from sunzi.tables.value_columns import open_column

    if not 0 <= arguments.max_unknown <= 1:
        raise ParameterError(f"--max-unknown must be between 0 and 1, got {arguments.max_unknown:g}")
    if arguments.plan == STANDARD:
        raise ParameterError("the plan must be a file; only the table may come from standard input")
    check_order("privatize", arguments.plan, [arguments.table])
    check_paths([arguments.plan, arguments.table], arguments.output, force=arguments.force)
    public, is_table = _public_columns(arguments)
    plan = load_labelled_plan(arguments.plan, arguments.labels)
    client = plan.client(max_epsilon=arguments.max_epsilon)
    source = sys.stdin.buffer if arguments.table == STANDARD else arguments.table
    lookup, name, others = _lookup(arguments, plan)
    both = [name for name in public if name in others]
    if both:
        raise ParameterError(f"the column {both[0]!r} is an attribute to protect, so it cannot be public as well")
    is_numbers = not (plan.domain.has_labels or plan.domain.is_indices or plan.domain.is_open)
    with (
        open_output(arguments.output, "a file of reports", BATCH_MAGIC[:4]) as stream,
        _naming(input_name(arguments.table)),
        open_column(source, name, arguments.delimiter, (*others, *public), numbers=is_numbers) as column,
        ProgressBar("rows") as progress,
    ):
        if is_table:
            pieces = _located(column, lookup, progress, len(others))
            write_reports(stream, client, public, pieces, reports_at_once(plan))
        else:
            for batch in batches(client, column, lookup, progress):
                stream.write(batch)
        lookup.check(arguments.max_unknown)
    _summarize(plan, lookup, arguments.output, public)
    return 0


def _lookup(arguments: argparse.Namespace, plan: Plan) -> tuple[Lookup, str | None, list[str]]:
    """What finds the index of every row, the column of values, and for records the columns of the other attributes."""
    from sunzi.domains.records import RecordDomain
    from sunzi.domains.texts import OpenDomain
    from sunzi.tables.index_lookup import IndexLookup, RecordLookup, TextLookup

    fold = arguments.fold.split(",") if arguments.fold else ()
    if isinstance(plan.domain, OpenDomain):
        if arguments.labels is not None:
            raise ParameterError("this plan has no labels; leave --labels out")
        if fold:
            raise ParameterError("--fold finds labels, and this plan has none; change the texts before, if you must")
        return TextLookup(plan.domain, skip_missing=arguments.skip_missing), arguments.column, []
    if not isinstance(plan.domain, RecordDomain):
        return IndexLookup(plan.domain, skip_missing=arguments.skip_missing, fold=fold), arguments.column, []
    if arguments.column is not None:
        raise ParameterError("this plan's records have a column per attribute, named by the plan; leave --column out")
    first, *others = plan.domain.attributes
    return RecordLookup(plan.domain, skip_missing=arguments.skip_missing, fold=fold), first, others


def _public_columns(arguments: argparse.Namespace) -> tuple[list[str], bool]:
    """The names of the public columns, and whether the output is a table."""
    from sunzi.tables.report_files import check_public

    public, is_table = columns_by(arguments), (arguments.output or "").lower().endswith(".parquet")
    if public and not is_table:
        raise ParameterError("--by keeps columns with the reports, which needs a table; give -o FILE.parquet")
    check_public(public)
    return public, is_table


def _located(column: Column, lookup: Lookup, progress: ProgressBar, private: int) -> Iterator[tuple[Integers, Rows]]:
    """The rows of all pieces, with their indices; of the other columns, the first ``private`` are dropped."""
    for rows in column.pieces:
        yield lookup.located(rows), replace(rows, public=rows.public[private:])
        progress.update(lookup.rows, column.fraction())


def batches(client: BatchClient, column: Column, lookup: Lookup, progress: ProgressBar) -> Iterator[bytes]:
    """Batches with the reports of all rows in order; at least one, so that a file without rows is not empty."""
    made = 0
    for indices in _portions(column, lookup, reports_at_once(client.plan)):
        made += 1
        yield client.report_indices(indices)
        progress.update(lookup.rows, column.fraction())
    if not made:
        yield client.report_batch([])


def _portions(column: Column, lookup: Lookup, size: int) -> Iterator[Integers]:
    """The indices of all rows, ``size`` at a time, for pieces of any size."""
    import numpy as np

    pending = np.empty(0, dtype=np.int64)
    for rows in column.pieces:
        found = lookup.indices(rows)
        pending = np.concatenate([pending, found]) if len(pending) else found
        whole = len(pending) - len(pending) % size
        for start in range(0, whole, size):
            yield pending[start : start + size]
        pending = pending[whole:]
    if len(pending):
        yield pending


def reports_at_once(plan: Plan) -> int:
    """The number of reports whose random words and bits take at most tens of megabytes."""
    from sunzi.tables.column_rows import ROWS_AT_ONCE

    by_words = int(_MOST_WORDS / max(1.0, plan.protocol.words_per_report))
    by_bits = _MOST_BITS // max(1, plan.max_report_bits)
    return max(1, min(ROWS_AT_ONCE, by_words, by_bits))


@contextmanager
def _naming(table: str) -> Iterator[None]:
    """Put the table's name before error messages about it."""
    try:
        yield
    except DomainError as error:
        raise DomainError(f"{table}: {error}") from None
    except ParameterError as error:
        raise ParameterError(f"{table}: {error}") from None


def _summarize(plan: Plan, lookup: Lookup, output: str | None, public: list[str]) -> None:
    """Report unknown values, skipped rows and what was written."""
    unknown = lookup.describe()
    if unknown is not None:
        say(f"sunzi: note: {unknown}", sys.stderr)
    if lookup.skipped:
        share = f"{lookup.skipped:,} of {counted(lookup.rows, 'row')}"
        say(f"sunzi: note: {share} had no value and sent no report; epsilon does not protect that", sys.stderr)
    if public:
        say(f"sunzi: note: public, not protected: {', '.join(map(repr, public))}", sys.stderr)
    say_written(output, f"{counted(lookup.rows - lookup.skipped, 'report')} of {bits_in_words(plan.report_bits)}")
