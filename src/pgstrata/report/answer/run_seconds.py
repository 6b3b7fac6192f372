"""The seconds of a cell's runs in words: the warm-up that was cut, and what is left of a run worth."""

from __future__ import annotations

from typing import Any

from pgstrata.compare.noise.within_run import SteadySeconds, weigh_seconds
from pgstrata.model.answer import Study
from pgstrata.report.sentences.names import count
from pgstrata.units import render_duration


def say_seconds(study: Study, cell: str) -> str:
    """Cut 5 s of warm-up in 3 of 12 blocks; the part of a run that counts (1 min) is worth about 9 independent seconds.

    Empty for a cell in slices, and for runs that are too short to tell.
    """
    found = weigh_seconds(study.runs, cell)
    if found is None:
        return ""
    cut = _say_cut(found) if found.cut_blocks else ""
    if found.worth is None:
        return cut
    worth = count(max(1, round(found.worth)), "independent second")
    start = f"{cut}; the part" if cut else "The part"
    return f"{start} of a run that counts ({render_duration(found.seconds)}) is worth about {worth}"


def _say_cut(found: SteadySeconds) -> str:
    low, high = render_duration(found.shortest), render_duration(found.longest)
    length = high if low == high else f"{low} to {high}"
    return f"Cut {length} of warm-up in {found.cut_blocks} of {count(found.blocks, 'block')}"


def seconds_json(study: Study, cell: str) -> dict[str, Any] | None:
    """As `say_seconds`; lengths in seconds, None where nothing is known."""
    found = weigh_seconds(study.runs, cell)
    if found is None:
        return None
    return {
        "cell": cell,
        "blocks": found.blocks,
        "cut_blocks": found.cut_blocks,
        "cut_shortest": found.shortest,
        "cut_longest": found.longest,
        "runs": found.runs,
        "unsteady_runs": found.unsteady,
        "seconds": found.seconds,
        "worth": found.worth,
    }
