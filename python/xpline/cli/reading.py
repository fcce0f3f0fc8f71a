"""A progress bar for a file that is being read, for work that may be over before a bar could be drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def reading(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left, on a terminal; what it yields takes the bytes read, and the bytes there are or 0.

    The bar appears, and rich is imported, at the first call.
    """
    with ExitStack() as stack:
        show: Callable[[int, int], None] | None = None

        def on_progress(read: int, total: int) -> None:
            nonlocal show
            if show is None:
                show = _bar(title, stack) if sys.stderr.isatty() else lambda read, total: None
            show(read, total)

        yield on_progress


def _bar(title: str, stack: ExitStack) -> Callable[[int, int], None]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from xpline.cli.output import terminal

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeElapsedColumn())
    left = TimeRemainingColumn(compact=True)
    progress = stack.enter_context(Progress(*columns, left, console=terminal, transient=True))
    task = progress.add_task(title, total=None)
    return lambda read, total: progress.update(task, completed=read, total=total or None)
