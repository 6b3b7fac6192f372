"""What a noise floor says of rounds and run lengths: as a line and for JSON. Pure, and without numpy for plans."""

from __future__ import annotations

import math
from typing import Any

from pgstrata.model.floor import Floor, RunsMeasured, SlicesMeasured
from pgstrata.units import render_duration


def say_components(floor: Floor) -> str:
    """Where the scatter of a cell arises, and the time around what is measured; empty where it is not known."""
    if floor.slices is not None:
        return _say_slices(floor.slices)
    return "" if floor.runs is None else say_runs(floor.runs)


def _say_slices(slices: SlicesMeasured) -> str:
    parts = slices.components
    return (
        f"{_percent(parts.sigma_round)} between rounds, beyond that {_percent(parts.sigma_start)} between starts, at "
        f"most {_percent(parts.sigma_start_upper)} ({parts.visits} visits); {_seconds(slices.dead_seconds)} around "
        f"{_seconds(parts.rounds * slices.round_seconds)} of slices"
    )


def say_runs(runs: RunsMeasured) -> str:
    """4 % between seconds (autocorrelation 0.60), beyond that 2 % between runs; 9.5 s around a run."""
    noise = runs.noise
    return (
        f"{_percent(math.sqrt(noise.second))} between seconds (autocorrelation {noise.phi:.2f}), beyond that "
        f"{_percent(math.sqrt(noise.run))} between runs; {_seconds(runs.overhead)} around a run"
    )


def _percent(sd: float) -> str:
    return f"{100 * sd:.2g} %"


def _seconds(seconds: float) -> str:
    return render_duration(float(f"{seconds:.2g}"))


def components_json(floor: Floor) -> dict[str, Any]:
    """The fields `slices` and `runs` of a floor: standard deviations in log units, times in seconds."""
    return {
        "slices": None if floor.slices is None else _slices_json(floor.slices),
        "runs": None if floor.runs is None else runs_json(floor.runs),
    }


def _slices_json(slices: SlicesMeasured) -> dict[str, Any]:
    parts = slices.components
    return {
        "visits": parts.visits,
        "rounds": parts.rounds,
        "sd_rounds": parts.sigma_round,
        "sd_visits": parts.sigma_visit,
        "sd_between_visits": parts.sigma_start,
        "sd_between_visits_upper": parts.sigma_start_upper,
        "dead_seconds": slices.dead_seconds,
        "round_seconds": slices.round_seconds,
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
