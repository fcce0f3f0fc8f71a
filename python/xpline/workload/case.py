"""A case: one combination of a benchmark's matrix, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xpline.bench.points import Point
from xpline.workload.job import Job
from xpline.workload.source import Place


@dataclass(frozen=True)
class Case:
    """A benchmark with one value of each key of its matrix. ``jobs`` has one job, or two that run side by side."""

    name: str
    matrix: Mapping[str, str]
    jobs: Mapping[str, Job]
    place: Place

    @property
    def is_parallel(self) -> bool:
        return len(self.jobs) > 1

    @property
    def is_far(self) -> bool:
        """Whether the threads run on the other socket than the memory."""
        return any(job.numa_pattern == "far" for job in self.jobs.values())

    @property
    def persists(self) -> bool:
        """Whether it writes to persistent memory in order to keep what it writes."""
        return any(job.persists for job in self.jobs.values())

    @property
    def values(self) -> str:
        """The values of the matrix, as ``key=value``, separated by blanks."""
        return " ".join(f"{key}={value}" for key, value in self.matrix.items())

    @property
    def title(self) -> str:
        return f"{self.name}: {self.values}" if self.matrix else self.name

    def point(self, seed: int = 1, max_requests: int | None = None) -> Point:
        """The case as a point."""
        point: Point = {
            "experiment": "workload",
            "name": self.name,
            "groups": [job.group(name) for name, job in self.jobs.items()],
            "seed": seed,
        }
        return point if max_requests is None else point | {"max_requests": max_requests}

    def config(self) -> dict[str, Any]:
        """Every key of the case with its value, by part where there are two."""
        configs = {name: job.config() for name, job in self.jobs.items()}
        return configs if self.is_parallel else configs[self.name]
