"""Source files with the cost of their lines."""

from __future__ import annotations

from pathlib import Path

from xpline.run.lines import Line
from xpline.run.outcome import Run

#: Source lines shown above and below one that costs.
AROUND = 4


def annotated(run: Run, file: str, around: int = AROUND) -> list[tuple[int, str, Line | None]]:
    """The lines of a source file that cost something, and those around them: number, text, and the cost.

    A gap is a line number 0. Empty where the file cannot be read.
    """
    costs = {line.line: line for line in reversed(run.lines) if line.file == file and line.line}
    try:
        text = Path(file).read_text(errors="replace").splitlines()
    except OSError:
        return []
    shown = sorted(
        {number for cost in costs for number in range(cost - around, cost + around + 1) if 0 < number <= len(text)}
    )
    rows: list[tuple[int, str, Line | None]] = []
    for number in shown:
        if rows and number != rows[-1][0] + 1:
            rows.append((0, "", None))
        rows.append((number, text[number - 1], costs.get(number)))
    return rows
