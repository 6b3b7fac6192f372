"""Progress while a plan is carried out: a living screen on a terminal, plain lines elsewhere, or JSON lines."""

from __future__ import annotations

import gc
import json
import os
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Final, TextIO

from rich.cells import cell_len

from pgstrata.app.answer import load_answer
from pgstrata.app.resuming import repeat_command
from pgstrata.app.run import Reboots, RunOutcome, default_study, go_home, run_experiment
from pgstrata.cli.plain import erase_lines
from pgstrata.cli.screen import Screen, render_tps, shape_of
from pgstrata.conduct.loop import Ending
from pgstrata.errors import DiskFullError, InterruptedByUserError, PgstrataError
from pgstrata.model.experiment import Experiment
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.events import Event, EventKind, Events
from pgstrata.report.sentences.answer import answer_sentences
from pgstrata.report.sentences.causes import cause_sentences
from pgstrata.store.repository import StudyFolder, StudyFolders
from pgstrata.system.files import is_full
from pgstrata.system.terminal import can_be_drawn_on
from pgstrata.system.units import Repeated
from pgstrata.units import render_duration

_WIDTH, _LEAST = 100, 20
_GO_ON = "give the same command again to go on: finished runs are kept"


def run_with_progress(
    plan: Plan,
    file: Path,
    study: Path | None,
    budget: float | None,
    *,
    events: bool,
    reboot: bool = False,
    resume: bool = False,
) -> None:
    """Run, telling progress; at the end the answer in words and what to do next.

    `reboot`: this machine may be rebooted; `resume`: also, and systemd gives the same command again after each boot.
    """
    gc.enable()
    stored = StudyFolder(study) if study else default_study(StudyFolders(), file, plan)
    out = sys.stderr if events else sys.stdout
    print(f"study: {stored}", file=out)
    print(_wrapped(_chosen(plan, file), out), file=out)
    sink = choose_sink(events=events, experiment=plan.experiment)
    repeated = repeat_command(stored.identity, file, sys.argv[1:]) if resume else None
    reboots = Reboots(allowed=reboot or resume, repeated=repeated)
    try:
        outcome = run_experiment(plan, stored, sink, budget=budget, reboots=reboots)
    finally:
        sink.close()
    if outcome.reboots_into:
        _say_reboot(outcome, repeated, out)
        return
    try:
        _say_answer(outcome, file, out)
    finally:
        if outcome.goes_home:
            print("this machine boots its own kernel now", file=out, flush=True)
            go_home()


def _say_answer(outcome: RunOutcome, file: Path, out: TextIO) -> None:
    stored = outcome.study
    _say_ending(outcome, file, out)
    if outcome.done:
        answer = load_answer(stored, why=True)
        print(file=out)
        for sentence in answer_sentences(answer):
            print(_wrapped(sentence.text, out), file=out)
        for text in cause_sentences(answer):
            print(_wrapped(f"{text} (pgstrata show --why {stored})", out), file=out)
        print(f"\nmore: pgstrata show {stored}   pgstrata report {stored}", file=out)


def _chosen(plan: Plan, file: Path) -> str:
    """What was chosen or noted, in short; the plan gives the reasons."""
    short = [note.partition(":")[0] for note in plan.experiment.notes if " = " in note.partition(":")[0]]
    text = f"chosen, the same everywhere: {', '.join(short)}" if short else "nothing was chosen for you"
    return f"{text} (reasons: pgstrata plan {file})"


def _wrapped(text: str, out: TextIO) -> str:
    """Lines no longer than is easily read, or than a terminal is wide."""
    width = min(_WIDTH, max(_LEAST, get_terminal_size().columns)) if out.isatty() else _WIDTH
    return textwrap.fill(text, width=width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _say_reboot(outcome: RunOutcome, repeated: Repeated | None, out: TextIO) -> None:
    print(f"{outcome.done} of {outcome.total} runs are kept; this machine boots {outcome.reboots_into} now", file=out)
    if repeated is None:
        print("  -> give the same command again when it is back", file=out, flush=True)
    else:
        print(f"  -> it goes on by itself then; `journalctl -u {repeated.name}` shows how", file=out, flush=True)


def _say_ending(outcome: RunOutcome, file: Path, out: TextIO) -> None:
    counted = f"{outcome.done} of {outcome.total} runs"
    if outcome.ending is Ending.BUDGET and not outcome.measured:
        block = render_duration(outcome.block_seconds)
        took = f" after {render_duration(outcome.preparing)} of building and trying" if outcome.preparing else ""
        both = "both" if took else "that"
        print(
            f"nothing was measured: the budget, or what is left of it{took}, is less than a block, which needs {block}",
            f"  -> `pgstrata run {file} --study {outcome.study} --budget TIME` with more than {both}",
            sep="\n",
            file=out,
        )
    elif outcome.ending is Ending.BUDGET:
        print(
            f"the budget is spent: {counted}; `pgstrata run {file} --study {outcome.study} --budget TIME` goes on",
            file=out,
        )
    elif outcome.ending is Ending.DECIDED:
        print(f"everything is decided: {counted} were needed", file=out)
    else:
        print(f"done: {counted}", file=out)


_AS_BEFORE: Final = "as before"


def choose_sink(*, events: bool, experiment: Experiment | None = None) -> Sink:
    """Where events go: JSON lines, a terminal's screen, or plain lines.

    Jobs of CI get lines, even those that have a terminal: their output is kept and read later.
    """
    if events:
        return JsonSink(sys.stdout)
    if can_be_drawn_on(sys.stdout, os.environ.get("TERM", "")) and not os.environ.get("CI"):
        return TerminalSink(sys.stdout, experiment)
    return PlainSink(sys.stdout)


class Sink(Events):
    """A place for events that can be ended. When nobody takes them any more, that interrupts the experiment."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._told: set[str] = set()

    def _line(self, event: Event) -> str:
        """A finished thing as a line; the doubt of a run is told in full once, whatever its figures are."""
        if event.kind is EventKind.RUN_FINISHED and event.status == RunStatus.COMPLETED and event.text:
            shape = shape_of(event.text)
            if shape in self._told:
                return render_event(replace(event, text=_AS_BEFORE))
            self._told.add(shape)
        return render_event(event)

    def close(self) -> None:
        """Leave the terminal as it was."""

    def _write(self, text: str, *, above: int | None = None) -> None:
        """Write text, after the `above` lines above have been erased."""
        try:
            if above is not None:
                erase_lines(self._out, above)
            self._out.write(text)
            self._out.flush()
        except OSError as error:
            if is_full(error):
                raise DiskFullError(
                    "the progress cannot be written: the disk is full", where="standard output", remedy=_GO_ON
                ) from None
            raise InterruptedByUserError(
                f"stopped, because the reader of the progress has gone ({error.strerror})", remedy=_GO_ON
            ) from None


class JsonSink(Sink):
    """One JSON object a line, for other programs."""

    def emit(self, event: Event) -> None:
        fields = {key: value for key, value in asdict(event).items() if value not in ("", None, ())}
        self._write(f"{json.dumps(fields)}\n")


class PlainSink(Sink):
    """A line for each thing that is finished; no progress within a run."""

    def emit(self, event: Event) -> None:
        line = self._line(event)
        if line:
            self._write(f"{line}\n")


class TerminalSink(Sink):
    """A screen that lives below what is told once: notes, warnings and runs that failed.

    Args:
        out: a terminal.
        experiment: gives names to its environments.
    """

    def __init__(self, out: TextIO, experiment: Experiment | None = None) -> None:
        super().__init__(out)
        self._screen = Screen(experiment=experiment)
        self._shown: list[str] = []

    def emit(self, event: Event) -> None:
        self._screen.note(event)
        told = f"{self._line(event)}\n" if _is_told(event) else ""
        self._draw(told)

    def _draw(self, told: str = "") -> None:
        columns, rows = _size(self._out)
        lines = self._screen.lines(columns - 1, rows - 1)
        # a terminal that has become narrower has wrapped them
        above = _rows(self._shown, columns)
        self._shown = lines
        self._write(told + "".join(f"{line}\n" for line in lines), above=above)

    def close(self) -> None:
        columns, _ = _size(self._out)
        above = _rows(self._shown, columns)
        self._shown = []
        with suppress(PgstrataError):
            self._write("", above=above)


def _rows(lines: Sequence[str], columns: int) -> int:
    """How many rows lines take on a terminal that may have become narrower since."""
    return sum(max(1, -(-cell_len(line) // columns)) for line in lines)


def _is_told(event: Event) -> bool:
    """Whether it stays on the terminal."""
    match event.kind:
        case EventKind.NOTE | EventKind.WARNING | EventKind.STUDY_STARTED:
            return True
        case EventKind.RUN_FINISHED:
            return event.status != RunStatus.COMPLETED
        case _:
            return False


def _size(out: TextIO) -> tuple[int, int]:
    """Columns and rows; those of an old terminal where nobody tells."""
    try:
        found = os.get_terminal_size(out.fileno())
    except OSError:
        return 80, 24
    return max(_LEAST, found.columns), max(5, found.lines)


def _doubt(event: Event) -> str:
    """What keeps a run from being simply valid."""
    word = event.validity if event.status == RunStatus.COMPLETED else event.status
    return f"{word}: {event.text}" if event.text else word


def render_event(event: Event) -> str:
    """A finished thing as a line; empty for what only lives."""
    match event.kind:
        case EventKind.RUN_FINISHED:
            tps = f"{render_tps(event.value):>9} tps" if event.value is not None else "    no tps"
            doubt = "" if event.validity == Validity.VALID else f"  {_doubt(event)}"
            return f"[{event.done}/{event.total}] {event.run}  {tps}{doubt}"
        case EventKind.BLOCK_FINISHED:
            left = f", at most {render_duration(event.seconds_left)} left" if event.seconds_left else ""
            return f"block {event.text} finished ({event.done} of {event.total}){left}"
        case EventKind.BUILDING:
            return ""
        case EventKind.NOTE:
            return event.text
        case EventKind.WARNING:
            return f"warning: {event.text}"
        case EventKind.STUDY_STARTED:
            return (
                f"resuming: {event.done} of up to {event.total} runs are done"
                if event.done
                else f"up to {event.total} runs to make: {event.text}"
            )
        case _:
            return ""
