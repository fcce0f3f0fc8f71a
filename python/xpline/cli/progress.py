"""A progress bar for work that counts itself: so many done, of so many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from xpline.cli.output import terminal


@contextmanager
def counting(title: str) -> Iterator[Callable[..., None]]:
    """A bar with the time left, on a terminal; what it yields takes how many are done, of how many, and, where the
    work has several steps, the title of the step."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left = TimeRemainingColumn(compact=True)
    hidden = not terminal.is_terminal
    with Progress(
        *columns, left, console=terminal, transient=True, speed_estimate_period=120, disable=hidden
    ) as progress:
        task = progress.add_task(title, total=None)
        shown = title

        def update(done: int, total: int, step: str = title) -> None:
            nonlocal shown
            if step != shown:
                progress.reset(task, description=step)
                shown = step
            progress.update(task, completed=done, total=total)

        yield update
