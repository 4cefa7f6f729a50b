"""What was measured, read from its files, and what is assumed beside it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from blizzard.model.source.forecast import COMPRESSED_WEIGHT, PARQUET_PER_NDJSON

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
SUPPOSED_BYTES_PER_CORE = 60e6
"""Plain NDJSON a core and second, where bench/results.json has not said."""
CORES_OF_RESULTS = 2
"""Cores that the results are of, where they do not say."""

Figures = dict[str, Any]
Asked = dict[str, float]
"""Requests by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """List prices such as S3 and on-demand machines have in their cheapest regions."""

    per_1000_writes: float = 0.005
    per_1000_reads: float = 0.0004
    storage_per_gb_month: float = 0.023
    core_hour: float = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What was not measured."""

    headroom: float = 2.0
    """Cores beyond what the day's mean needs: peaks, stragglers, retries, catching up."""
    cores_per_executor: int = 8
    gz_ratio: int = COMPRESSED_WEIGHT
    parquet_ratio: float = PARQUET_PER_NDJSON
    request_secs: float = 0.03
    """One small request after another."""
    page_secs: float = 0.1
    """One page of a listing after another."""
    spark_job_secs: float = 0.2
    """From handing in a job to its first task, in a session that is warm."""
    optimized_file: int = 10**9
    """What OPTIMIZE makes of small files."""
    swept_days: int = 2
    """Days of source files that a sweep compares: `sweep_horizon: 1`, or sources cleared daily."""
    penguin_memory: int = 8 * 10**9
    s3_reads_per_prefix: int = 5_500
    s3_writes_per_prefix: int = 3_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was measured, on the machine that the figures name."""

    bytes_per_core: float
    """Plain NDJSON that a core turns into uploaded Parquet in a second."""
    first_look: float
    """CPU of finding a new file."""
    sweep: float
    """CPU of comparing a known file."""
    sweep_requests: float
    plan: float
    encode: float
    decode: float
    merge: float
    """CPU of bringing a known name from one segment to the next."""
    start_requests: float
    entry_fixed: float
    entry_per_source: float
    entry_per_data_file: float
    name_bytes: float
    commit_bytes: float
    checkpoint_bytes: float
    memory_fixed: float
    """What penguin's memory grows by with a small table, beside the interpreter and libraries."""
    memory_per_active: float
    commit_fixed: float
    commit_per_active: float
    commit_per_file: float
    poll: float
    """CPU of a poll that finds nothing; it does not grow with the table."""
    checkpoint_per_active: float
    requests: dict[str, Asked] = field(default_factory=dict)


def read_costs() -> Costs:
    """Take the costs from the files of figures."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else None
    growth = json.loads((HERE / "growth.json").read_text())["figures"]
    return costs_of(growth, json.loads((HERE / "sizes.json").read_text()), results)


def bytes_per_core(results: Figures | None) -> float:
    """Return the throughput of a core: what workload `a` says of blizzard, or what is supposed."""
    workload = (results or {}).get("workloads", {}).get("a")
    seconds = workload["contestants"]["blizzard"]["seconds"] if workload else []
    if results is None or workload is None or not seconds:
        return SUPPOSED_BYTES_PER_CORE
    cores = results.get("machine", {}).get("cores", CORES_OF_RESULTS)
    return float(workload["bytes"] / (median(seconds) * cores))


def costs_of(growth: list[Figures], sizes: Figures, results: Figures | None) -> Costs:
    """Turn figures into costs of one file, one name, one request."""

    def most(measure: str) -> Figures:
        """Return the figures of the largest size, where what is fixed counts least."""
        return max((one for one in growth if one["measure"] == measure), key=lambda one: one["n"])

    def each(measure: str, what: str) -> float:
        return float(most(measure)[what] / most(measure)["n"])

    entry, names = sizes["documents"]["entry"], sizes["documents"]["known_names"]
    few, many = sizes["log"][-2], sizes["log"][-1]

    def slope(what: str) -> float:
        """Return the growth from one size of a log to the next."""
        return float((many[what] - few[what]) / (many["active"] - few["active"]))

    waiting = min(
        (one for one in growth if one["measure"] == "commit"), key=lambda one: abs(one["n"] - 10**4)
    )
    return Costs(
        bytes_per_core=bytes_per_core(results),
        first_look=each("first_look", "cpu_seconds"),
        sweep=each("sweep", "cpu_seconds"),
        sweep_requests=each("sweep", "requests"),
        plan=each("planning", "cpu_seconds"),
        encode=entry["encode_seconds_per_source_file"],
        decode=entry["decode_seconds_per_source_file"],
        merge=names["merge_seconds_per_name"],
        start_requests=most("start")["requests"],
        entry_fixed=entry["fixed_bytes"],
        entry_per_source=entry["bytes_per_source_file"],
        entry_per_data_file=entry["bytes_per_data_file"],
        name_bytes=names["bytes_per_name"] + names["index_bytes_per_name"],
        commit_bytes=many["commit_bytes_per_file"],
        checkpoint_bytes=many["checkpoint_bytes_per_file"],
        memory_fixed=few["memory_bytes"] - few["active"] * slope("memory_bytes"),
        memory_per_active=slope("memory_bytes"),
        commit_fixed=sizes["log"][0]["commit_cpu_seconds"],
        commit_per_active=slope("commit_cpu_seconds"),
        commit_per_file=waiting["cpu_seconds"] / waiting["n"],
        poll=many["idle_poll_cpu_seconds"],
        checkpoint_per_active=slope("checkpoint_cpu_seconds"),
        requests={**sizes["requests"], "keep": sizes["documents"]["keep"]["requests"]},
    )
