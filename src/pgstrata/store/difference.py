"""What differs between the plan that a study was made for and the one that somebody wants to go on with."""

import difflib
from dataclasses import fields
from pathlib import Path

from pgstrata.errors import StudyError
from pgstrata.model.codec import encode
from pgstrata.model.experiment import Experiment
from pgstrata.model.plan import Plan
from pgstrata.units import shorten

_MOST_LINES = 12
_MOST_CHARACTERS = 160


def explain_difference(folder: Path, kept: Plan, wanted: Plan) -> StudyError:
    """The error that says so in a few lines."""
    if kept.horizon != wanted.horizon:
        return StudyError(
            f"the study was begun by a version whose comparisons end at {kept.horizon} blocks, and cannot be continued",
            where=str(folder),
            remedy="give a new folder to measure anew; `pgstrata show` and `report` show this study as it is",
        )
    return StudyError(
        "the study belongs to another plan",
        where=str(folder),
        remedy="give a new folder for the changed experiment, or take the change back to go on with this study",
        details=_diff_texts(kept.experiment, wanted.experiment) or _diff_values(kept, wanted),
    )


def _diff_texts(kept: Experiment, wanted: Experiment) -> tuple[str, ...]:
    lines = difflib.unified_diff(
        kept.text.splitlines(),
        wanted.text.splitlines(),
        "the study's experiment",
        "the experiment given",
        n=0,
        lineterm="",
    )
    changed = [line for line in lines if not line.startswith("@@")]
    shown = tuple(line[:_MOST_CHARACTERS] for line in changed[:_MOST_LINES])
    rest = len(changed) - len(shown)
    return (*shown, f"... and {rest} more lines") if rest else shown


def _diff_values(kept: Plan, wanted: Plan) -> tuple[str, ...]:
    """The texts are the same: something was chosen differently, by options or by another pgstrata.

    What was kept has no secrets, so that plans are compared in the form in which they are kept.
    """
    pairs = [
        (field.name, getattr(kept.experiment, field.name), getattr(wanted.experiment, field.name))
        for field in fields(Experiment)
        if field.name not in {"text", "notes"}
    ]
    pairs.append(("designs", _say_designs(kept), _say_designs(wanted)))
    pairs.append(("number of planned runs", len(kept.runs), len(wanted.runs)))
    found = [
        _say_change(name, old, new)
        for name, old, new in pairs
        if encode(old) != encode(new) and name not in {"environments", "cells"}
    ]
    found += [
        f"{name} differ" for name, old, new in pairs if encode(old) != encode(new) and name in {"environments", "cells"}
    ]
    return tuple(found) or ("the same experiment, but another order or another choice of builds",)


def _say_change(name: str, before: object, after: object) -> str:
    old, new = (shorten(str(each), _MOST_CHARACTERS) for each in (before, after))
    return f"{name}: {old} in the study, {new} now"


def _say_designs(plan: Plan) -> str:
    cells = plan.experiment.cells
    return ", ".join(f"{cell.identity} {plan.design(cell.identity).describe(cell.run)}" for cell in cells)
