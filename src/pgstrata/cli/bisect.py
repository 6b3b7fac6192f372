"""`pgstrata bisect`."""

import gc
import sys
from pathlib import Path
from typing import NoReturn

from pgstrata.app.bisect import SearchQuestion, ask_commits, ask_factor, carry_out, search_folder
from pgstrata.cli.options import end_with
from pgstrata.cli.progress import PlainSink, choose_sink
from pgstrata.errors import UsageError
from pgstrata.report.commands.bisect import bisection_json, render_bisection


def bisect_and_end(
    file: Path,
    *,
    factor: str | None,
    commits: str | None,
    repository: Path | None,
    study: Path | None,
    budget: float | None,
    json: bool,
) -> NoReturn:
    """Search, telling progress; at the end what came of it, as text or JSON, and the exit code."""
    question = _ask(file, factor, commits, repository)
    gc.enable()
    folder = study or search_folder(file, question)
    out = sys.stderr if json else sys.stdout
    print(f"search: {folder}", file=out)
    print(f"{len(question.levels)} levels from {question.name(0)} to {question.name(-1)}", file=out)
    sink = PlainSink(sys.stderr) if json else choose_sink(events=False)
    try:
        found = carry_out(question, folder, sink, budget=budget)
    finally:
        sink.close()
    end_with(bisection_json(found) if json else f"\n{render_bisection(found)}", found.code)


def _ask(file: Path, factor: str | None, commits: str | None, repository: Path | None) -> SearchQuestion:
    if commits is None and repository is not None:
        raise UsageError("--repo was given without --git", remedy="add --git GOOD..BAD")
    if commits is None:
        return ask_factor(file, factor)
    if factor is not None:
        raise UsageError("both --git and --factor were given", remedy="give one of them")
    if repository is None:
        raise UsageError("--git was given without --repo", remedy="add --repo DIR, a clone of PostgreSQL's repository")
    return ask_commits(file, commits, repository)
