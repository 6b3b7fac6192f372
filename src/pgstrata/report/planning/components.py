"""A noise floor with what it says of rounds and run lengths: as a line and for JSON. Pure, without numpy for plans."""

import math
from typing import Any, Final

from pgstrata.model.floor import FLOOR_LIFETIME, Floor, RunsMeasured, SlicesMeasured
from pgstrata.report.json.documents import pick_fields
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.units import render_share, rough_duration

SCATTER: Final = (
    "visits rounds sd_rounds=sigma_round sd_visits=sigma_visit sd_between_visits=sigma_start "
    "sd_between_visits_upper=sigma_start_upper"
)
"""Fields of the components of visits in slices."""


def say_components(floor: Floor) -> str:
    """Where the scatter of a cell arises, and the time around what is measured; empty where it is not known."""
    if floor.slices is not None:
        return _say_slices(floor.slices)
    return "" if floor.runs is None else say_runs(floor.runs)


def _say_slices(slices: SlicesMeasured) -> str:
    parts = slices.components
    dead, measured = rough_duration(slices.dead_seconds), rough_duration(parts.rounds * slices.round_seconds)
    return (
        f"{render_share(parts.sigma_round)} between rounds, beyond that {render_share(parts.sigma_start)} between "
        f"starts, at most {render_share(parts.sigma_start_upper)} ({parts.visits} visits); {dead} around {measured} of "
        "slices"
    )


def say_runs(runs: RunsMeasured) -> str:
    """4 % between seconds (autocorrelation 0.60), beyond that 2 % between runs; 9.5 s around a run."""
    noise = runs.noise
    return (
        f"{render_share(math.sqrt(noise.second))} between seconds (autocorrelation {noise.phi:.2f}), beyond that "
        f"{render_share(math.sqrt(noise.run))} between runs; {rough_duration(runs.overhead)} around a run"
    )


def say_source(floor: Floor) -> str:
    """Study a, and with how many others it was pooled."""
    if not floor.pooled:
        return floor.source
    others = f"{floor.pooled} other{'s' if floor.pooled > 1 else ''}"
    return f"{floor.source} and {others} of the last {FLOOR_LIFETIME.days} days, pooled"


def floor_fields(floor: Floor) -> dict[str, Any]:
    """A floor with its components: standard deviations in log units, times in seconds."""
    return {
        **pick_fields(floor, "s0 measured cell metric design differences"),
        "source": say_source(floor),
        "doubt": say_reason(floor.doubt) if floor.doubt else "",
        "slices": None
        if floor.slices is None
        else {
            **pick_fields(floor.slices.components, SCATTER),
            **pick_fields(floor.slices, "dead_seconds round_seconds"),
        },
        "runs": None if floor.runs is None else runs_json(floor.runs),
    }


def runs_json(runs: RunsMeasured) -> dict[str, Any]:
    """The components of single runs."""
    return {
        "seconds": runs.noise.seconds,
        "sd_seconds": math.sqrt(runs.noise.second),
        "autocorrelation": runs.noise.phi,
        "sd_between_runs": math.sqrt(runs.noise.run),
        "overhead_seconds": runs.overhead,
    }
