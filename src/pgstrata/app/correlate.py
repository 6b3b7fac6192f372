"""`pgstrata correlate`: a window of an archive to associations."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pgstrata.app.explain import archive_facts
from pgstrata.app.live_windows import choose_window, say_span
from pgstrata.diagnosis.live.correlate import correlate, fewest_seconds
from pgstrata.errors import ArchiveError, UsageError
from pgstrata.model.association import ArchiveSeries, Associated, Associations
from pgstrata.stats.association import FEWEST_STEPS
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.units import render_count, render_duration

_DAY: Final = 86_400
_LONGEST: Final = 92 * _DAY
"""Seconds of a window that fits into memory by the minute."""


def load_associations(archive: Path, begin: str | None, end: str | None) -> Associated:
    """Which waits of a window go with what server and host did.

    Args:
        archive: its folder.
        begin: when the window begins, as the user wrote it; None for the archive's beginning.
        end: when it ends; None for the archive's end.

    Raises:
        ArchiveError: there is no archive, or too little is recorded of the window.
        UsageError: a time cannot be read, or the window is too long.
    """
    with ArchiveReader.open(archive) as reader:
        facts = archive_facts(reader, archive)
        window, clipped = choose_window(facts, begin, end)
        if window.seconds > _LONGEST:
            raise UsageError(
                f"the window is longer than {_LONGEST // _DAY} days",
                where=say_span(window),
                remedy="give a shorter one: --from TIME --to TIME",
            )
        series = reader.series(window, facts)
    found = _require_steps(correlate(series), series)
    return Associated(archive=str(archive), facts=facts, clipped=clipped, found=found)


def _require_steps(found: Associations, series: ArchiveSeries) -> Associations:
    if found.steps < FEWEST_STEPS:
        least = render_duration(fewest_seconds(series))
        steps = f"{render_count(found.steps, 'step')} of {render_duration(found.step)}"
        raise ArchiveError(
            f"the window has {steps} with looks at sessions, and associations need {FEWEST_STEPS}",
            where=say_span(series.span),
            remedy=f"give a window with at least {least} of records",
        )
    return found
