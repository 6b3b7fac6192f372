"""The worth of a cell's runs in independent seconds, as text and JSON."""

from __future__ import annotations

from typing import Any

from pgstrata.compare.noise.within_run import weigh_seconds
from pgstrata.model.answer import Study
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.sentences.names import count
from pgstrata.units import render_duration


def say_seconds(study: Study, cell: str) -> str:
    """A run (1 min) is worth about 9 independent seconds.

    Empty for a cell in slices, and for runs that are too short to tell.
    """
    found = weigh_seconds(study.runs, cell)
    if found is None or found.worth is None:
        return ""
    worth = count(max(1, round(found.worth)), "independent second")
    return f"A run ({render_duration(found.seconds)}) is worth about {worth}"


def seconds_json(study: Study, cell: str) -> dict[str, Any] | None:
    """As `say_seconds`; lengths in seconds, None where nothing is known."""
    found = weigh_seconds(study.runs, cell)
    return None if found is None else {"cell": cell, **pick_fields(found, "runs seconds worth")}
