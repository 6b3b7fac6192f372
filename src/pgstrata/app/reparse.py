"""Rebuild what is derived from a study's evidence."""

from __future__ import annotations

from pathlib import Path

from pgstrata.app.wiring import make_derive
from pgstrata.store.study import NOISE, PLAN_FILE, load_plan_file, reparse_study


def reparse(study: Path) -> int:
    """The number of runs that were derived anew, with those beside the study for the noise floor."""
    noise = study / NOISE
    beside = _derive_anew(noise) if (noise / PLAN_FILE).exists() else 0
    return _derive_anew(study) + beside


def _derive_anew(study: Path) -> int:
    return reparse_study(study, make_derive(load_plan_file(study).plan.experiment.allow))
