"""From claims and figures to one self-contained HTML page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby

import vl_convert as vlc
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from xpline import __version__
from xpline.claims import Judged
from xpline.figures import ERROR_LIMIT, Figure
from xpline.figures.figure import VL_VERSION
from xpline.platform import Entry


def page(
    claims: Sequence[Judged],
    figures: Sequence[Figure],
    summary: str,
    platforms: Mapping[str, Sequence[Entry]],
    measured: bool,
) -> bytes:
    """The page, as bytes of UTF-8; ``platforms`` are the entries of each, ``measured`` whether there was a data set.

    The same input gives the same bytes: the page bears no date.
    """
    shown = [claim for claim in claims if claim.status != "not covered yet"]
    rest = sorted((claim for claim in claims if claim.status == "not covered yet"), key=lambda one: one.claim.source)
    sources = {source: list(group) for source, group in groupby(rest, key=lambda one: one.claim.source)}
    return render_page(
        "page.html",
        figures,
        summary=summary,
        counts=Counter(claim.status for claim in shown),
        claims=shown,
        not_covered=sources,
        platforms={name: _sections(entries) for name, entries in platforms.items()},
        measured=measured,
        limit=ERROR_LIMIT,
    )


def render_page(template: str, figures: Sequence[Figure], **values: object) -> bytes:
    """A page from a template that extends ``base.html``, with everything in it that its figures need."""
    environment = Environment(
        loader=PackageLoader("xpline.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["script_json"] = _script_json
    html = environment.get_template(template).render(
        version=__version__, figures=figures, vega=Markup(_vega()), **values
    )
    return html.encode()


def _sections(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Entries by the part of the platform that they belong to: all of a key but its last word."""
    sections: dict[str, list[Entry]] = {}
    for entry in entries:
        sections.setdefault(entry.key.rpartition(".")[0] or "platform", []).append(entry)
    return sections


@cache
def _vega() -> str:
    """The drawing library, to stand inside the page."""
    bundle = vlc.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VL_VERSION)
    return bundle.replace("</script", "<\\/script")


def _script_json(value: object) -> Markup:
    """JSON that may stand inside a script element."""
    return Markup(json.dumps(value, sort_keys=True).replace("<", "\\u003c"))
