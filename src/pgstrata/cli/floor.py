"""`pgstrata floor`."""

import gc
import json as json_module
import sys
from pathlib import Path

from pgstrata.app.answer import load_answer
from pgstrata.app.floor import FloorOutcome, choose_study, measure_floor, plan_floor
from pgstrata.cli.progress import PlainSink, choose_sink
from pgstrata.errors import ExitCode, UsageError
from pgstrata.experiment.compose import Wishes
from pgstrata.model.floor import FLOOR_LIFETIME
from pgstrata.report.planning.floor import measured_json, say_measured
from pgstrata.report.sentences.answer import alarm_sentences
from pgstrata.store.repository import StudyFolder, StudyFolders
from pgstrata.units import render_duration


def measure_and_tell(
    file: Path | None,
    wishes: Wishes,
    *,
    server: str | None,
    blocks: int | None,
    study: Path | None,
    budget: float | None,
    events: bool,
    json: bool,
) -> None:
    """Measure, telling progress; at the end the floors, as text or JSON. Exit code 3 where a cell has none."""
    if events and json:
        raise UsageError("both --events and --json were given", remedy="give one of them: both write to stdout")
    gc.enable()
    plan = plan_floor(file, wishes, blocks, server)
    stored = StudyFolder(study) if study else choose_study(StudyFolders(), plan, file)
    out = sys.stderr if events or json else sys.stdout
    print(f"study: {stored}", file=out)
    needed = render_duration(round(plan.forecast.seconds_total))
    print(f"{len(plan.blocks)} blocks of two equal environments, about {needed}", file=out)
    sink = PlainSink(sys.stderr) if json else choose_sink(events=events)
    try:
        outcome = measure_floor(plan, stored, sink, budget=budget)
    finally:
        sink.close()
    alarms = list(alarm_sentences(load_answer(stored)))
    if json:
        print(_render_json(outcome, alarms))
    else:
        for line in _lines(outcome, alarms):
            print(line, file=out)
    if outcome.lack:
        sys.exit(ExitCode.UNDECIDED)


def _lines(outcome: FloorOutcome, alarms: list[str]) -> list[str]:
    lines = list(alarms)
    if outcome.folder:
        host = outcome.plan.experiment.hosts[0].named
        lines.append(f"noise floor of {host}, kept for {FLOOR_LIFETIME.days} days in {outcome.folder}:")
        lines += [f"  {say_measured(outcome.plan, floor)}" for floor in outcome.plan.floors.values()]
    if outcome.lack:
        begun = outcome.done < len(outcome.plan.runs)
        again = "give the same command again to go on" if begun else "see why runs are invalid, and measure again"
        lines += [outcome.lack, f"  -> {again}"]
    return lines


def _render_json(outcome: FloorOutcome, alarms: list[str]) -> str:
    document = {
        "schema": 1,
        "study": str(outcome.study),
        "kept": str(outcome.folder) if outcome.folder else None,
        "floors": measured_json(outcome.plan, outcome.floors),
        "lack": outcome.lack,
        "alarms": alarms,
    }
    return json_module.dumps(document, ensure_ascii=False, indent=2)
