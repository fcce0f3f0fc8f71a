"""From a row of the sweep to the experiment that repeats it on a modelled platform."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xpline.cases import Case, case
from xpline.dataset.tables import Tables

#: The operations of the sweep in the words of the experiments.
OPERATIONS = {"Load": "load", "NTStore": "ntstore", "Store": "store", "Store+Flush": "store+clwb"}

#: The DIMMs a thread may touch, by ``alloc_type`` of alignment.csv.
BINDINGS = ["shared-all", "own-all", "own-dimm", "shared-imc", "own-pair", "ni-shared-all", "ni-own-dimm"]

#: Versions of the benchmark that fence each access, by table: their 64 B loads take one idle latency each, whatever
#: the DIMMs (12 threads read 1.7 GiB/s at random and 3.5 GiB/s in sequence), where those of other versions overlap.
FENCED = {"alignment": "f1bdd3", "bandwidth": "b9b739"}


@dataclass(frozen=True)
class PlannedRow:
    """A row of the data set with the case that predicts it, or the reason why there is none."""

    file: str
    key: str
    case: Case | None
    reason: str | None = None


class _NotCoveredError(Exception):
    """What a row needs that no platform or experiment has; the text is the reason shown."""


def plan(tables: Tables) -> list[PlannedRow]:
    """The case of every row, in the order of the tables; repeats of a configuration share one equal case."""
    planned = []
    for file, table in tables.items():
        for row in table.iter_rows(named=True):
            try:
                planned.append(PlannedRow(file, row["__key__"], _CASES[file](row)))
            except _NotCoveredError as reason:
                planned.append(PlannedRow(file, row["__key__"], None, str(reason)))
    return planned


def _bandwidth(row: dict[str, str]) -> Case:
    point = {"op": _one_of(OPERATIONS, row, "operation"), "size": _integer(row, "access_size")}
    if row["task_type"] == "RandBW":
        point["experiment"] = "random"
    elif row["task_type"] == "StrideBW":
        point |= {"experiment": "stride", "stride": _integer(row, "stride_size")}
        if _is_fenced(row, "bandwidth"):
            point["fence"] = point["size"]
    else:
        raise _NotCoveredError(f"task {row['task_type']} is not an experiment yet")
    return _on_platform(row, _platform(row), point)


def _flush(row: dict[str, str]) -> Case:
    point = {
        "experiment": "flush",
        "pattern": _one_of({"0": "sequential", "1": "random"}, row, "op"),
        "size": _integer(row, "access_size"),
        "clwb": _integer(row, "clwb_size"),
        "fence": _integer(row, "fence_size"),
    }
    return _on_platform(row, _platform(row), point)


def _alignment(row: dict[str, str]) -> Case:
    point = {
        "experiment": "align",
        "op": _one_of(OPERATIONS, row, "operation"),
        "size": _integer(row, "access_size"),
        "binding": _one_of({str(i): name for i, name in enumerate(BINDINGS)}, row, "alloc_type"),
        "fenced": False,
    }
    if _is_fenced(row, "alignment"):
        # With six threads writes alone were run, which an sfence ends; with more, everything, which an mfence ends.
        point |= {"fence": point["size"]} if row["threads"] == "6" else {"fenced": True}
    if row["media"] != "lpmem":
        raise _NotCoveredError(f"media {row['media']} has no platform with DIMMs to bind threads to yet")
    return _on_platform(row, "optane", point)


_CASES = {"bandwidth": _bandwidth, "flush": _flush, "alignment": _alignment}


#: The platforms of the sweep, by ``media`` (the first letter says local or remote) and ``interleaving``. DRAM is always
#: interleaved.
_PLATFORMS = {
    ("pmem", "1"): "optane", ("pmem", "0"): "optane-ni", ("dram", "1"): "dram", ("dram", "0"): "dram",
}  # fmt: skip

#: The same memories from the other socket.
_REMOTE = {"optane": "optane-remote", "dram": "dram-remote"}


def _platform(row: dict[str, str]) -> str:
    media, interleaving = row["media"], row["interleaving"]
    is_remote = media.startswith("r") or row.get("local") == "0"
    near = _PLATFORMS.get((media[1:], interleaving))
    platform = _REMOTE.get(near) if near and is_remote else near
    if platform is None or media[0] not in "lr":
        where = ", not interleaved, of the other socket" if near else ""
        raise _NotCoveredError(f"media {media}{where} is not a platform yet")
    return "optane-2018" if platform == "optane" and _is_of_november_2018(row) else platform


def _is_of_november_2018(row: dict[str, str | None]) -> bool:
    """Rows in which strides of 4 KiB stay on one bank of each DIMM (see ``platforms/optane-2018.toml``)."""
    return bool(re.match(r"2018-11|11/\d+/2018", row.get("date") or ""))


def _on_platform(row: dict[str, str], platform: str, point: dict[str, object]) -> Case:
    """Add the threads and, on Optane, the power budget of the DIMM (``avgpower`` in mW; 0 marks DRAM)."""
    milliwatts = _integer(row, "avgpower")
    budget = platform.startswith("optane") and milliwatts > 0
    overrides = (f"optane.power.budget={milliwatts / 1000:g}W",) if budget else ()
    return case(platform, point | {"threads": _integer(row, "threads")}, overrides)


def _is_fenced(row: dict[str, str | None], file: str) -> bool:
    return (row["version"] or "").startswith(FENCED[file])


def _one_of(known: dict[str, str], row: dict[str, str], column: str) -> str:
    if row[column] not in known:
        raise _NotCoveredError(f"{column} {row[column]} is not known (known: {', '.join(known)})")
    return known[row[column]]


def _integer(row: dict[str, str], column: str) -> int:
    if row[column] is None:
        raise _NotCoveredError(f"{column} is empty")
    return int(row[column])
