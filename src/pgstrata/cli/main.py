"""Commands and options; everything behind them lives in `app`."""

import sys
from collections.abc import Callable
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Final

import typer

from pgstrata.cli.answers import gate, reparse, report, show
from pgstrata.cli.bundle import bundle, unbundle
from pgstrata.cli.completion import (
    complete_assignment,
    complete_factor,
    complete_level,
    complete_study,
    complete_workload,
)
from pgstrata.cli.documents import CSV, Charts, FormatOrNumbers, choose_format
from pgstrata.cli.host import host_app
from pgstrata.cli.init import init
from pgstrata.cli.listing import list_, open_
from pgstrata.cli.live import explain, watch
from pgstrata.cli.live_correlate import correlate
from pgstrata.cli.live_incidents import incidents
from pgstrata.cli.live_window import window
from pgstrata.cli.merge import merge
from pgstrata.cli.options import Budget, Destination, Json, NoQueryText, StudyOption, Threshold, duration_of
from pgstrata.cli.serve import serve
from pgstrata.cli.servers import servers_app
from pgstrata.cli.tables import decide, export, import_
from pgstrata.cli.vm import vm_app
from pgstrata.cli.workload import workload_app

app = typer.Typer(
    name="pgstrata",
    help="Find which layer changed PostgreSQL's performance, by how much and how surely.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(servers_app, name="servers")
app.add_typer(host_app, name="host")
app.add_typer(workload_app, name="workload")
app.add_typer(vm_app, name="vm")

File = Annotated[Path, typer.Argument(metavar="FILE", help="An experiment file (TOML).")]
EventsOption = Annotated[bool, typer.Option("--events", help="Progress as JSON lines on standard output.")]
Scale = Annotated[int | None, typer.Option(help="Scale of the dataset.")]
Clients = Annotated[int | None, typer.Option(help="Number of clients.")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the order of runs.")]
RunLength = Annotated[str | None, typer.Option(help="Length of a run, such as 10s.")]


def try_(
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="FACTOR=LEVEL,LEVEL...", help="server=16,18 for example.", autocompletion=complete_assignment
        ),
    ],
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            help="Such as select-only, simple-update, oltp-read-only.",
            autocompletion=complete_workload,
        ),
    ] = None,
    scale: Scale = None,
    clients: Clients = None,
    run: RunLength = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks, at most.")] = None,
    threshold: Threshold = None,
    control: Annotated[bool, typer.Option("--control", help="Add the baseline a second time.")] = False,
    budget: Budget = None,
    seed: Seed = None,
    study: StudyOption = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE", help="Where the experiment file goes.")] = None,
    events: EventsOption = False,
) -> None:
    """Ask a question in one line, and measure.

    This writes an experiment file and runs it. The same command continues the same study.
    """
    from pgstrata.app.compose import compose_experiment
    from pgstrata.cli.progress import run_with_progress
    from pgstrata.experiment.compose import Wishes

    wishes = Wishes(workloads=tuple(workload or ()), scale=scale, clients=clients, run=run, blocks=blocks,
                    threshold=threshold, budget=budget, seed=seed, controls=("same",) if control else ())  # fmt: skip
    composed = compose_experiment(assignments, wishes, output)
    print(f"experiment file: {composed.file}", file=sys.stderr if events else sys.stdout)
    for line in composed.remarks:
        print(line, file=sys.stderr if events else sys.stdout)
    run_with_progress(composed.plan, composed.file, study, None, events=events)


def plan(file: File, json: Json = False, seed: Seed = None) -> None:
    """Show what would be measured.

    Forecasts of time and disk space are part of it. Nothing is changed.
    """
    from pgstrata.app.question import load_plan
    from pgstrata.report.planning.plan import plan_json, render_plan

    loaded = load_plan(file, seed=seed, sure=False)
    print(plan_json(loaded) if json else render_plan(loaded, str(file)), end="" if json else "\n")


def run(
    file: File,
    study: StudyOption = None,
    budget: Budget = None,
    blocks: Annotated[
        int | None,
        typer.Option(
            "--blocks", help="Maximum number of blocks, instead of the file's; a larger one continues a study."
        ),
    ] = None,
    seed: Seed = None,
    events: EventsOption = False,
    no_query_text: NoQueryText = False,
    reboot: Annotated[
        bool, typer.Option("--reboot", help="Allow reboots of this machine; you give the same command after each.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume-after-boot", help="Allow reboots; systemd gives the same command after each.")
    ] = False,
) -> None:
    """Carry out an experiment. The same command resumes it."""
    from pgstrata.app.question import load_plan
    from pgstrata.cli.progress import run_with_progress
    from pgstrata.errors import UsageError

    if budget is not None and (reboot or resume):
        raise UsageError(
            "a budget holds for one command, and this one is given again after each boot",
            where="--budget",
            remedy="write budget = TIME into the experiment: that holds for the whole study",
        )
    plan_ = load_plan(file, seed=seed, blocks=blocks, query_text=not no_query_text)
    run_with_progress(plan_, file, study, duration_of(budget), events=events, reboot=reboot, resume=resume)


def floor(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="An experiment file: measure its cells on its baseline.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            help="Default: select-only and simple-update (repeatable).",
            autocompletion=complete_workload,
        ),
    ] = None,
    scale: Scale = None,
    clients: Clients = None,
    run: RunLength = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="LEVEL",
            help="embedded (default), 14 to 18, maven:MAJOR, prefix:DIR, dsn:SERVICE.",
            autocompletion=complete_level,
        ),
    ] = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks, 12 to 60; 13 if none are given.")] = None,
    budget: Budget = None,
    study: StudyOption = None,
    events: EventsOption = False,
    json: Json = False,
) -> None:
    """Measure how much equal environments differ.

    The result is the noise floor of this machine. It is kept for 30 days; `plan` and `show` use it to say what a study
    can see. Exit code 3: too few differences.
    """
    from pgstrata.cli.floor import measure_and_tell
    from pgstrata.experiment.compose import Wishes

    wishes = Wishes(workloads=tuple(workload or ()), scale=scale, clients=clients, run=run)
    time = duration_of(budget)
    measure_and_tell(file, wishes, server=server, blocks=blocks, study=study, budget=time, events=events, json=json)


def bisect(
    file: File,
    factor: Annotated[
        str | None,
        typer.Option(
            "--factor",
            metavar="KEY",
            help="The factor to search along, if there are several. With --git: server (default) or kernel.",
            autocompletion=complete_factor,
        ),
    ] = None,
    git: Annotated[
        str | None,
        typer.Option(
            "--git",
            metavar="GOOD..BAD",
            help="Search along commits instead: of PostgreSQL, or with --factor kernel of Linux.",
        ),
    ] = None,
    repo: Annotated[Path | None, typer.Option("--repo", metavar="DIR", help="Where --git finds the commits.")] = None,
    build: Annotated[
        str | None,
        typer.Option(
            "--build",
            metavar="COMMAND",
            help="Command that builds each commit of Linux; default make -j$(nproc) bzImage modules.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Configuration of the kernels; default DIR/.config of --repo."),
    ] = None,
    study: Annotated[
        Path | None, typer.Option("--study", metavar="DIR", help="Folder of the search.", autocompletion=complete_study)
    ] = None,
    budget: Budget = None,
    json: Json = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Also write one HTML file: answer, table, chart."),
    ] = None,
    charts: Charts = None,
    format_: FormatOrNumbers = None,
) -> None:
    """Find the level at which a metric changed.

    The ends are compared first, then the level in the middle of what is left, by a study each. The same command goes on
    with what is there. Exit code 0: found, or no change; 3: undecided, or several levels are left.
    """
    from pgstrata.cli.bisect import Outputs, Wishes, bisect_and_end

    wishes = Wishes(factor=factor, commits=git, repository=repo, build=build, config=config)
    outputs = Outputs(report=report, charts=charts, format=choose_format(format_, CSV))
    bisect_and_end(file, wishes, study=study, budget=duration_of(budget), json=json, outputs=outputs)


def doctor(host: Destination = None, json: Json = False) -> None:
    """Examine this host, or another one.

    It says what can be a factor there, what would make the rest possible, what would be run with sudo, what measuring
    costs, and how quiet the host is. It takes about ten seconds and changes nothing. Exit code 4: nothing can be
    measured there.
    """
    from pgstrata.app.remote_doctor import examine_host
    from pgstrata.errors import ExitCode
    from pgstrata.report.commands.doctor import MOST_COLUMNS, doctor_json, render_text

    if sys.stderr.isatty():
        print(f"examining {host or 'this host'}: about ten seconds", file=sys.stderr)
    examination = examine_host(host)
    columns = max(80, min(MOST_COLUMNS, get_terminal_size().columns)) if sys.stdout.isatty() else MOST_COLUMNS
    text = doctor_json(examination) if json else render_text(examination, columns)
    print(text, end="" if json else "\n")
    if examination.unfit:
        sys.exit(ExitCode.HOST_NOT_FIT)


_COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "init": init,
    "try": try_,
    "plan": plan,
    "run": run,
    "list": list_,
    "show": show,
    "report": report,
    "open": open_,
    "serve": serve,
    "floor": floor,
    "decide": decide,
    "import": import_,
    "export": export,
    "gate": gate,
    "bisect": bisect,
    "bundle": bundle,
    "unbundle": unbundle,
    "merge": merge,
    "reparse": reparse,
    "doctor": doctor,
    "watch": watch,
    "explain": explain,
    "window": window,
    "incidents": incidents,
    "correlate": correlate,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from pgstrata import __version__

        print(f"pgstrata {__version__}")
        raise typer.Exit
