"""The list of benchmarks in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks import (
    attacks,
    batches,
    clients,
    collector,
    columns,
    devices,
    efficient,
    files,
    growth,
    modular,
    open_domains,
    planning,
    queries,
    record_errors,
    records,
    servers,
    subsets,
    trends,
    whole,
)
from benchmarks.results import Result

Benchmark = Callable[[float], Iterator[Result]]
"""Takes a scale (1 for reported results, less for a trial run) and yields results as they are measured."""

BENCHMARKS: dict[str, Benchmark] = {
    "import": whole.importing,
    "client-start": devices.starting,
    "client-reports": devices.reporting,
    "randomise-vs-words": clients.randomise_against_words,
    "randomise-vs-peer": clients.randomise_against_peer,
    "sample-and-count": clients.sample_and_count,
    "tally": servers.tally,
    "subsets": subsets.subsets,
    "decode-compact": servers.decode_compact,
    "decode-pgr": servers.decode_pgr,
    "decode-mss": modular.decode_mss,
    "standard-errors": modular.standard_errors,
    "efficient": efficient.efficient,
    "queries": queries.queries,
    "changes": queries.changes,
    "trends": trends.trends,
    "records": records.records,
    "record-errors": record_errors.record_errors,
    "open-domains": open_domains.open_domains,
    "memory": whole.memory,
    "whole-way": whole.whole_way,
    "by-files": files.by_files,
    "planning": planning.planning,
    "batches": batches.batches,
    "collector": collector.throughput,
    "collector-attacked": collector.under_attack,
    "collector-resources": attacks.resources,
    "collector-connections": attacks.connections,
    "collector-epochs": attacks.many_epochs,
    "parquet": columns.by_one_machine,
    "spark": columns.by_spark,
    "growth": growth.growth,
}
