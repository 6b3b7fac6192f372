"""Rebuild what is derived from a study's evidence."""

from __future__ import annotations

from pgstrata.app.wiring import make_derive
from pgstrata.ports.studies import StoredStudy


def reparse(study: StoredStudy) -> int:
    """Derive all runs of a study anew; their number."""
    return study.reparse(make_derive(study.head().plan.experiment))
