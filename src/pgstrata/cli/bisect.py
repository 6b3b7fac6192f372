"""`pgstrata bisect`."""

import gc
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pgstrata import __version__
from pgstrata.app.bisect import carry_out
from pgstrata.app.search_questions import SearchQuestion, ask_commits, ask_factor, ask_kernels, search_folder
from pgstrata.cli.documents import CSV, MARKDOWN, write_files
from pgstrata.cli.options import end_with
from pgstrata.cli.progress import PlainSink, choose_sink
from pgstrata.errors import UsageError
from pgstrata.model.boot import KERNEL
from pgstrata.report.answer.numbers import render_numbers, search_numbers
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.commands.bisect import bisection_json, render_bisection
from pgstrata.report.commands.search_page import make_search_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The search as it was asked for on the command line; None where nothing was."""

    factor: str | None = None
    commits: str | None = None
    repository: Path | None = None
    build: str | None = None
    config: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where a page and charts are written, and the format of what is printed."""

    report: Path | None = None
    charts: Path | None = None
    format: str | None = None


def bisect_and_end(
    file: Path,
    wishes: Wishes,
    *,
    study: Path | None,
    budget: float | None,
    json: bool,
    outputs: Outputs,
) -> NoReturn:
    """Search, telling progress; at the end what came of it, as text, JSON or in another format, and the exit code."""
    question = _ask(file, wishes)
    gc.enable()
    folder = study or search_folder(file, question)
    plain = not json and outputs.format in {None, "text"}
    out = sys.stdout if plain else sys.stderr
    print(f"search: {folder}", file=out)
    print(f"{len(question.levels)} levels from {question.name(0)} to {question.name(-1)}", file=out)
    sink = choose_sink(events=False) if plain else PlainSink(sys.stderr)
    try:
        found = carry_out(question, folder, sink, budget=budget)
    finally:
        sink.close()
    document = make_search_document(found, __version__)
    write_files(document, outputs.report, outputs.charts)
    if json:
        end_with(bisection_json(found), found.code)
    if outputs.format == CSV:
        end_with(render_numbers(search_numbers(found)), found.code)
    end_with(emit_markdown(document) if outputs.format == MARKDOWN else f"\n{render_bisection(found)}", found.code)


def _ask(file: Path, wishes: Wishes) -> SearchQuestion:
    commits, repository, factor = wishes.commits, wishes.repository, wishes.factor
    of_linux = commits is not None and factor == KERNEL
    if not of_linux and (wishes.build is not None or wishes.config is not None):
        option = "--build" if wishes.build is not None else "--config"
        what = f"{option} was given without --git and --factor kernel"
        raise UsageError(what, remedy="add both: it says how commits of Linux are built")
    if commits is None and repository is not None:
        raise UsageError("--repo was given without --git", remedy="add --git GOOD..BAD")
    if commits is None:
        return ask_factor(file, factor)
    if factor not in {None, "server", KERNEL}:
        what = f"commits are levels of server or kernel, not of {factor}"
        raise UsageError(what, where="--factor", remedy="leave it out for PostgreSQL, or write --factor kernel")
    if repository is None:
        of = "Linux" if of_linux else "PostgreSQL"
        raise UsageError("--git was given without --repo", remedy=f"add --repo DIR, a clone of the repository of {of}")
    if of_linux:
        return ask_kernels(file, commits, repository, build=wishes.build, config=wishes.config)
    return ask_commits(file, commits, repository)
