"""A search along levels as words and JSON: where the step is, by what evidence, what could not be measured."""

from collections.abc import Iterator
from typing import Any, Final

from pgstrata.model.answer import Comparison, Verdict
from pgstrata.model.bisect import Bisection, BisectStep, Outcome
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.layout import WIDTH, wrap_text
from pgstrata.report.json.documents import SCHEMA, pick_fields, render_document
from pgstrata.report.sentences.names import count, name_where
from pgstrata.report.sentences.verdicts import render_between, render_figures, shown_interval, verdict_label

_MORE: Final = "allow more blocks or longer runs in another experiment, which starts another search"
_SKIPPED_FILE: Final = "skipped.json"
_HASH: Final = 12


def render_bisection(found: Bisection) -> str:
    """What `bisect` prints at its end, each line ended."""
    parts = [
        [line for text in say_search(found) for line in wrap_text(f"{text[0].upper()}{text[1:]}.", WIDTH)],
        [line for step in (found.ends, *found.steps) for line in _say_step(found, step)],
        _say_skipped(found),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def say_search(found: Bisection) -> Iterator[str]:
    """The answer in sentences without a full stop, the most important first."""
    metric, ends = METRICS[found.experiment.metric].title, found.ends.comparison
    where = f" ({_place(found)})" if ends else ""
    if found.outcome is Outcome.SAME or found.ends.side != "last":
        yield from _say_ends(found, metric, where)
        return
    whole = f"over the whole range, from {found.levels[0]} to {found.levels[-1]}, the change is {_figures(ends)}"
    between = f"between {found.levels[found.before]} and {found.levels[found.after]}"
    match found.outcome:
        case Outcome.FOUND:
            yield f"{metric} changed {between}{where}"
            if found.commits:
                commit = found.commits[found.after]
                yield f"it was commit {commit.hash} of {commit.date[:10]}, {commit.subject!r}"
                if commit.merged:
                    name = commit.hash[:_HASH]
                    yield (
                        "it is a merge; search the commits that it brought with "
                        f"--git $(git merge-base {name}^1 {name}^2)..{name}^2"
                    )
            yield whole
        case Outcome.RANGE:
            yield f"{metric} changed {between}{where}; what lies between them could not be measured"
            yield whole
        case _:
            why = found.reason or "the blocks that the experiment allows do not decide it"
            steps = count(found.after - found.before, "step")
            yield f"{metric} changed {between}{where}: which of {steps} it was is undecided ({why})"
            yield _say_more(found)


def _say_ends(found: Bisection, metric: str, where: str) -> Iterator[str]:
    first, last = found.levels[0], found.levels[-1]
    if found.outcome is Outcome.SAME:
        limit = _limit(found.ends)
        yield f"no change of {metric} larger than {limit} between {first} and {last}{where}: nothing to look for"
        return
    comparison = found.ends.comparison
    interval = shown_interval(comparison) if comparison else None
    known = f": the difference lies {render_between(interval)}" if interval else ""
    why = f" ({found.reason})" if found.reason else ""
    yield f"it is undecided whether {metric} changed at all between {first} and {last}{where}{known}{why}"
    yield _say_more(found)


def _say_more(found: Bisection) -> str:
    return "the same command goes on with --budget TIME" if found.reason else _MORE


def _place(found: Bisection) -> str:
    cell = found.ends.comparison.cell if found.ends.comparison else found.experiment.cells[0].identity
    return name_where(cell, found.experiment)


def _limit(step: BisectStep) -> str:
    return f"{step.threshold * 100:.3g} %"


def _figures(comparison: Comparison | None) -> str:
    if comparison is None or comparison.verdict is Verdict.COLLAPSED:
        return "a collapse"
    return render_figures(comparison)


def _say_step(found: Bisection, step: BisectStep) -> list[str]:
    """A line for people, and one for the study; none of a level that was not compared."""
    first, item = found.levels[0], step.comparison
    if item is None:
        return []
    commit = found.commits[found.levels.index(step.level)] if found.commits else None
    name = f"{step.level} against {first}" + (f" ({commit.subject})" if commit else "")
    verdict = f"{verdict_label(item)}, {_figures(item)}, {count(item.blocks, 'block')}"
    sides = {"first": f", like {first}", "last": f", like {found.levels[-1]}"}
    like = "" if step is found.ends else sides.get(step.side, f", {step.side}")
    return [
        *wrap_text(f"{name}: {verdict}{like} (threshold {_limit(step)})", WIDTH, rest="  "),
        f"  {step.study}",
    ]


def _say_skipped(found: Bisection) -> list[str]:
    if not found.skipped:
        return []
    lines = ["Not measured:"]
    for step in found.skipped:
        lines += wrap_text(f"{step.level}: {step.reason}", WIDTH, first="  ", rest="    ")
    if any(step.comparison is None for step in found.skipped):
        lines += wrap_text(f"They are tried again where {found.folder}/{_SKIPPED_FILE} is removed.", WIDTH)
    return lines


def bisection_json(found: Bisection) -> str:
    """The same for programs."""
    cells = found.ends.comparison.cell if found.ends.comparison else None
    exact = found.outcome is Outcome.FOUND
    open_ = found.outcome in {Outcome.FOUND, Outcome.RANGE, Outcome.UNDECIDED} and found.ends.side == "last"
    pair = {"before": _level(found, found.before), "after": _level(found, found.after)}
    return render_document(
        {
            "schema": SCHEMA,
            "folder": found.folder,
            **pick_fields(found, "question=experiment.question factor metric=experiment.metric"),
            "direction": METRICS[found.experiment.metric].direction.value,
            "cell": cells,
            "threshold": found.experiment.threshold,
            "levels": [_level(found, place) for place in range(len(found.levels))],
            "outcome": str(found.outcome),
            "exit_code": int(found.code),
            "reason": found.reason,
            "ends": _step_fields(found, found.ends),
            "steps": [_step_fields(found, step) for step in found.steps],
            "found": pair if exact else None,
            "between": pair if open_ else None,
            "skipped": [pick_fields(step, "level reason") for step in found.skipped],
        }
    )


def _level(found: Bisection, place: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"level": found.levels[place]}
    if found.commits:
        commit = found.commits[place]
        fields |= pick_fields(commit, "commit=hash author_date=date subject")
    return fields


def _step_fields(found: Bisection, step: BisectStep) -> dict[str, Any]:
    item = step.comparison
    return {
        "level": step.level,
        "reference": found.levels[0],
        "like": step.side,
        **pick_fields(item, "verdict effect interval confidence"),
        "blocks": item.blocks if item else 0,
        **pick_fields(item, "decided_at"),
        **pick_fields(step, "threshold study reason"),
    }
