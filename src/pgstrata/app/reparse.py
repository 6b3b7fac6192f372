"""Rebuild what is derived from a study's evidence."""

from __future__ import annotations

from pathlib import Path

from pgstrata.app.wiring import make_derive
from pgstrata.store.study import load_plan_file, reparse_study


def reparse(study: Path) -> int:
    """Derive all runs of a study anew; their number."""
    return reparse_study(study, make_derive(load_plan_file(study).plan.experiment))
