"""What can go wrong, said to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpline._native import XplineError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["IncompleteError", "Interrupted", "XplineError"]


class Interrupted(KeyboardInterrupt):
    """A sweep was stopped with Ctrl-C; ``table`` holds the rows of the points that were complete."""

    def __init__(self, table: pl.DataFrame) -> None:
        super().__init__(f"interrupted after {table.height} complete points")
        self.table = table


class IncompleteError(XplineError):
    """A sweep could not go on; ``table`` holds the rows of the points that were complete."""

    def __init__(self, message: str, table: pl.DataFrame) -> None:
        super().__init__(message)
        self.table = table
