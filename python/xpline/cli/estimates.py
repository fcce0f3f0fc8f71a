"""Which platforms are guessed: what neither a measurement nor a datasheet stands behind is said to be so."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from xpline.platform import Platform

#: Estimated values from which on a platform is called an estimate: what measured platforms leave open is less.
_MANY = 4


def note_estimates(platforms: Iterable[object]) -> None:
    """Say so, on standard error, of each platform that has many."""
    for platform in platforms:
        if isinstance(platform, Platform) and (guessed := len(platform.estimates)) >= _MANY:
            print(
                f"{platform.name}: {guessed} of {len(platform.show())} values are estimates; "
                f"xpline platform show {platform.name} --estimates lists them",
                file=sys.stderr,
            )
