"""The benchmark of known truth: causes injected into a real server, and whether they are found and named.

    make bench-incidents                                evaluate the recordings that are kept
    MINUTES=60 make bench-incidents                     record for so long first; again to go on, also after a kill
    MINUTES=60 KINDS=cpu-quota,io-throttle make …       these kinds alone
    MINUTES=60 HALF=judged make …                       recordings of this half alone
    MINUTES=60 taskset -c 1 make …                      on one CPU; another call may use another CPU at the same time

Recordings in the making lie in KEEP, by default bench/work/incidents, whole ones in bench/incidents/data. Nothing else
should run beside; the truth of a recording keeps the machine's load.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from figures import Figure, say_share
from incidents.evaluate import Judged, Scores, Share, Trial, before, false_alarms, first_of, kinds_of, score
from incidents.judging import explains_causes, find_unasked, finds_incidents, is_right, tell
from incidents.ledger import sweep
from incidents.naive import find_naively
from incidents.packing import unpack
from incidents.record import Times, record_for
from incidents.truth import ARCHIVE, DATA, NO_INCIDENT, Kind, load_recordings, load_truth

from pgstrata.errors import PgstrataError

WORK: Final = Path(__file__).parents[1] / "work" / "incidents"


def measure_incidents() -> Iterator[Figure]:
    """Record if MINUTES says so, then judge every recording there is by pgstrata's own code."""
    record_if_asked()
    trials = list(judge_all(load_recordings()))
    for half in ("judged", "tuning"):
        chosen = [trial for trial in trials if trial.recording.half == half]
        yield from figures_of(half, chosen)


def judge_all(folders: Sequence[Path]) -> Iterator[Trial]:
    """Each recording, told as it comes; one that this pgstrata cannot read is left out."""
    for folder in folders:
        with tempfile.TemporaryDirectory(prefix="pgstrata-") as scratch:
            try:
                trial = judge(folder, Path(scratch))
            except PgstrataError as error:
                print(f"    {folder.name} is left out: {error.what}", flush=True)
                continue
        print("\n".join(_lines(trial)), flush=True)
        yield trial


def judge(folder: Path, scratch: Path) -> Trial:
    """What pgstrata and the naive rule make of one recording."""
    recording = load_truth(folder)
    archive = unpack(folder / ARCHIVE, scratch)
    found = find_unasked(archive) if finds_incidents() else ()
    naive = find_naively(archive)
    judged = tuple(
        Judged(
            injection=each,
            told=tell(archive, (each.onset, each.end), before(recording, place)) if explains_causes() else None,
            found=first_of(found, each),
            naive=first_of(naive, each),
        )
        for place, each in enumerate(recording.injections)
    )
    return Trial(
        recording=recording,
        judged=judged,
        false=tuple(false_alarms(found, recording)),
        naive_false=tuple(false_alarms(naive, recording)),
    )


def _lines(trial: Trial) -> Iterator[str]:
    recording = trial.recording
    yield f"    {recording.name} ({recording.half}), load average up to {max(recording.machine_loads, default=0):.1f}"
    for each in trial.judged:
        effect = each.injection.effect
        slower = f"{effect.slower:.2f}x" if effect else "?"
        told = ", ".join((each.told.outcome, *(cause.kind for cause in each.told.causes[:3]))) if each.told else "-"
        right = "" if each.told is None else "right" if is_right(each.injection, each.told) else "WRONG"
        yield f"      {each.injection.kind:<17} {slower:>8} found {_delay(each):>6}  {right:<5} {told}"
    for alarm in trial.false:
        at = alarm.begin - recording.begin
        yield f"      false alarm at {at:.0f} s, {alarm.end - alarm.begin:.0f} s: {alarm.cause}"


def _delay(judged: Judged) -> str:
    return f"{judged.delay:+.0f} s" if math.isfinite(judged.delay) else "-"


def figures_of(half: str, trials: Sequence[Trial]) -> Iterator[Figure]:
    """The figures of one half; those that this pgstrata cannot give are left out."""
    if not trials:
        return
    found, name = score(trials), f"incidents, {half}"
    yield Figure(
        name=f"{name}: number", value=found.soon.all, goal=60, low_is_good=False, notes=[_counts(found, trials)]
    )
    if finds_incidents():
        yield from _found_figures(name, found)
    if explains_causes():
        yield _share(f"{name}: first cause right", found.first, 90, list(_by_kind(trials)))
        if found.calm.all:
            yield _share(f"{name}: demand no incident", found.calm, 90, [])
    yield from _naive_figures(name, found)


def _found_figures(name: str, found: Scores) -> Iterator[Figure]:
    notes = [
        f"smaller falls included {_text(found.soon)}; found at all {_text(found.found)}",
        f"median delay {found.delay:.0f} s",
        f"first cause that comes with it right: {_text(found.first_unasked)}",
    ]
    yield _share(f"{name}: falls of 20 % found in a minute", found.soon_large, 95, notes)
    if math.isfinite(found.onset_error):
        note = f"end wrong by {found.end_error:.0f} s in the median"
        yield Figure(name=f"{name}: onset error", value=found.onset_error, goal=10, unit="s", notes=[note])
    if found.hours:
        note = f"{found.alarms} in {found.hours:.2f} h of quiet; with 95 % at most {found.alarms_at_most:.3g} a week"
        yield Figure(name=f"{name}: false alarms", value=found.alarms_a_week, goal=1, unit="/week", notes=[note])


def _naive_figures(name: str, found: Scores) -> Iterator[Figure]:
    """The naive rule has no goal of its own: what pgstrata reaches is to be more."""
    notes = [f"in a minute {_text(found.naive_soon)}, its event right {_text(found.naive_first)}"]
    if found.hours:
        notes.append(f"false alarms a week: {found.naive_alarms_a_week:.3g}")
    yield _share(f"{name}: moving medians find", found.naive_found, 95, notes)


def _share(name: str, share: Share, goal: float, notes: Sequence[str]) -> Figure:
    value = share.percent if share.all else 0.0
    return Figure(name=name, value=value, goal=goal, unit="%", low_is_good=False, notes=[_text(share), *notes])


def _text(share: Share) -> str:
    return say_share(share.right, share.all)


def _counts(found: Scores, trials: Sequence[Trial]) -> str:
    return f"{len(trials)} recordings; of {found.unnoticed} further injections the clients noticed nothing"


def _by_kind(trials: Sequence[Trial]) -> Iterator[str]:
    """Right first causes by kind, in one or two lines."""
    words = []
    for kind, every in kinds_of(trials).items():
        if kind not in NO_INCIDENT:
            told = [(each.injection, each.told) for each in every if each.told and each.injection.is_incident]
            words.append(f"{kind} {sum(is_right(*each) for each in told)} of {len(told)}")
    for part in (words[place : place + 4] for place in range(0, len(words), 4)):
        yield ", ".join(part)


def record_if_asked() -> None:
    """Undo what a killed call has left, then record for MINUTES."""
    work = Path(os.environ.get("KEEP") or WORK)
    for folder in sweep(work):
        print(f"    undone: what {folder.name} had left when it was killed", flush=True)
    if seconds := 60 * float(os.environ.get("MINUTES") or 0):
        record_for(seconds, work, DATA, chosen_kinds(), Times(), chosen_half())


def chosen_half() -> str:
    """What HALF names; empty: the names decide.

    Raises:
        SystemExit: there is no such half.
    """
    half = (os.environ.get("HALF") or "").strip()
    if half not in ("", "judged", "tuning"):
        raise SystemExit(f"HALF: judged or tuning, not {half}")
    return half


def chosen_kinds() -> list[Kind]:
    """Those that KINDS names, or all.

    Raises:
        SystemExit: one of them is unknown.
    """
    words = [word.strip() for word in (os.environ.get("KINDS") or "").split(",") if word.strip()]
    if unknown := [word for word in words if word not in list(Kind)]:
        raise SystemExit(f"KINDS: there is no {', '.join(unknown)}: {', '.join(Kind)}")
    return [Kind(word) for word in words] or list(Kind)
