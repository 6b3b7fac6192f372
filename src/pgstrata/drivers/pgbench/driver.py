"""Has pgbench make its data, starts it on a host and collects what it leaves; reading that is `parse`'s part.

One folder holds one execution: the scripts, pgbench.out, pgbench.err, and one transaction log per thread.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from importlib.resources import files
from typing import Final

from pgstrata.drivers.pgbench import CAPABILITIES
from pgstrata.drivers.pgbench.parse import ERRORS, OUTPUT, TRANSACTIONS, PgbenchParser, hide_profile, parse_progress
from pgstrata.drivers.pgbench.script import parse_statements
from pgstrata.drivers.pgbench.shares import NAME, Share, share_out
from pgstrata.drivers.pgbench.slices import COUNTS
from pgstrata.drivers.progress import read_new
from pgstrata.drivers.shares import add_points, by_share, is_own_file
from pgstrata.errors import DiskFullError, HostFileError, ServerFailedError, UsageError, find_disk_full
from pgstrata.libpq import compose_connection
from pgstrata.model.experiment import Script
from pgstrata.model.server import Address, Build
from pgstrata.ports.clients import ClientProcesses
from pgstrata.ports.driver import Load, ProgressPoint, Statement
from pgstrata.ports.host import Command, Completed, Host, Process, StopSignal
from pgstrata.ports.steps import Steps

_LOG_PREFIX: Final = "tx"
_LOG_PART = re.compile(rf"{_LOG_PREFIX}\.\d+(?:\.(?P<thread>\d+))?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_FOR_SCRIPTS: Final = frozenset({"setup_sql"})
"""Options of a workload that concern its data, not its scripts."""

_FAILURES_DETAILED_SINCE: Final = 150000
_SHOWS_SCRIPTS_SINCE: Final = 130000
_MILLISECONDS: Final = 1e3
_NOTHING: Final = Script(file="select 1", text="SELECT 1;\n")
_COUNT_TIMEOUT: Final = 600.0


class PgbenchDriver(PgbenchParser):
    """pgbench of one build, on the client's host.

    Args:
        host: where pgbench runs.
        tools: the build whose pgbench drives every server of a study.
    """

    capabilities = CAPABILITIES

    def __init__(self, host: Host, tools: Build) -> None:
        self._host = host
        self._tools = tools
        self._facts: Mapping[str, str] | None = None
        self._own_scripts: dict[str, Script] = {}

    def facts(self) -> Mapping[str, str]:
        """Keys `version` and `sha256`; asked of the binary once."""
        if self._facts is None:
            self._facts = {
                "version": self._run("--version").text.strip().removeprefix("pgbench (PostgreSQL) "),
                "sha256": hashlib.sha256(self._host.read(self._tools.program("pgbench"))).hexdigest(),
            }
        return self._facts

    def statements(self, load: Load) -> tuple[Statement, ...]:
        values = {"scale": str(load.cell.scale), "client_id": "0", **_options_for_scripts(load)}
        return tuple(one for script in self._scripts(load) for one in parse_statements(script.text, values))

    def _scripts(self, load: Load) -> tuple[Script, ...]:
        files = _script_files(load, "")
        name = load.workload.builtin
        if files or not name or self._tools.version.number < _SHOWS_SCRIPTS_SINCE:
            return tuple(script for _, script in files)
        if name not in self._own_scripts:
            # it goes to stderr
            text = self._run(f"--show-script={name}").stderr.decode("utf-8", "replace")
            self._own_scripts[name] = Script(file=name, text=text)
        return (self._own_scripts[name],)

    def _run(self, option: str) -> Completed:
        program = self._tools.program("pgbench")
        return self._host.run(Command(argv=(program, option), environment=self._environment(), folder="/"), timeout=60)

    def least_load(self, load: Load) -> Load | None:
        bare = replace(load.cell, scripts=(_NOTHING,), rate=None, latency_limit=None, profile=False, options={})
        return replace(load, cell=bare)

    def session_names(self, load: Load) -> Mapping[str, int]:
        return {share.session_name: share.cpu for share in _shares(load) if share.cpu is not None}

    def start(self, load: Load, folder: str, *, on_parent_death: StopSignal = StopSignal.TERM) -> ClientProcesses:
        for path, script in _script_files(load, folder):
            self._host.write(path, script.text.encode())
        started: list[Process] = []
        try:
            started += (self._start_share(load, share, folder, on_parent_death) for share in _shares(load))
        except BaseException:
            for process in started:
                process.signal(StopSignal.KILL, group=True)
            raise
        return ClientProcesses(processes=started)

    def _start_share(self, load: Load, share: Share, folder: str, on_parent_death: StopSignal) -> Process:
        connection = compose_connection(load.address)
        pinned = () if share.cpu is None else ("taskset", "--cpu-list", str(share.cpu))
        named = {"PGAPPNAME": share.session_name} if share.session_name else {}
        command = Command(
            argv=(
                *load.launch,
                *pinned,
                self._tools.program("pgbench"),
                *self._options(load, share, folder),
                *connection.arguments,
            ),
            environment={**self._environment(), **connection.environment, **named},
            password=connection.password,
            folder=folder,
        )
        return self._host.spawn(
            command,
            stdout=f"{folder}/{share.file('out')}",
            stderr=f"{folder}/{share.file('err')}",
            on_parent_death=on_parent_death,
        )

    def end(self, process: Process) -> None:
        # pgbench's own timer (-T) is this signal: it ends after the transaction in hand, with log and summary complete
        process.signal(StopSignal.ALRM)
        process.signal(StopSignal.CONT, group=True)

    def counting(self, folder: str, marks: str, arm: int) -> Steps[Mapping[str, bytes]]:
        logs = [f"{folder}/{name}" for name in self._host.list_folder(folder) if _LOG_PART.fullmatch(name)]
        program = resources.files(__package__).joinpath("count.awk").read_text(encoding="ascii")
        options = ("-v", f"marks={marks}", "-v", f"arm={arm}")
        # the digits of a log are ASCII whatever the locale says
        command = Command(argv=("awk", *options, program, *logs), environment={"LC_ALL": "C"})
        counted = yield from self._host.running(command, timeout=_COUNT_TIMEOUT)
        for log in logs:
            self._host.remove_tree(log)
        return {COUNTS: counted.stdout}

    def _environment(self) -> Mapping[str, str]:
        # The parser knows the English texts only; decimal points would follow the locale as well.
        return {**self._tools.process_environment, "LC_ALL": "C"}

    def _options(self, load: Load, share: Share, folder: str) -> tuple[str, ...]:
        cell = load.cell
        options = ["-n", "-M", cell.protocol.value, "-c", str(share.clients), "-j", str(share.threads)]
        if load.transactions is not None:
            options += ["-t", str(load.transactions)]  # pgbench counts them per client
        else:
            options += ["-T", str(max(1, math.ceil(load.seconds)))]
        if load.progress is not None:
            options += ["-P", str(load.progress)]
        options.append(f"--random-seed={share.seed}")
        options += _what_runs(load, folder)
        if cell.rate is not None:
            options += ["-R", f"{cell.rate * share.clients / cell.clients:.12g}"]
        if cell.latency_limit is not None:
            options += ["-L", f"{cell.latency_limit * _MILLISECONDS:.12g}"]
        options += _logging(load.sampling_rate, folder)
        if cell.profile:
            options.append("-r")
        if load.workload.retries > 1 and not cell.scripts:
            options.append(f"--max-tries={load.workload.retries}")
        if load.workload.reconnects:
            options.append("-C")
        if self._tools.version.number >= _FAILURES_DETAILED_SINCE:
            options.append("--failures-detailed")
        return tuple(options)

    def progress(self, folder: str, offset: int) -> tuple[tuple[ProgressPoint, ...], int]:
        if len(names := [name for name in self._own_files(folder) if name.endswith(".err")]) > 1:
            return self._progress_of_all(folder, names, offset)
        return read_new(self._host, f"{folder}/{ERRORS}", offset, parse_progress)

    def _progress_of_all(self, folder: str, names: Iterable[str], told: int) -> tuple[tuple[ProgressPoint, ...], int]:
        """The seconds that all processes have reported, but for the first `told`, which were told before."""
        shares = by_share(NAME, dict(self._read_each(folder, names)))
        points = add_points([parse_progress(share["err"].decode("utf-8", "replace")) for share in shares])
        return points[told:], max(told, len(points))

    def _own_files(self, folder: str) -> list[str]:
        return [name for name in self._host.list_folder(folder) if is_own_file(NAME, name)]

    def collect(self, folder: str) -> Mapping[str, bytes]:
        """Output, complaints, and the threads' transaction logs joined and packed, as far as each of them is there.

        Of the output all is kept but the constants of statements.
        The only thing that is not kept of a log is a last line without its end: it belongs to a pgbench that was
        killed, and would merge with the next thread's first line.
        """
        found = dict(self._read_each(folder, self._own_files(folder)))
        if OUTPUT in found:
            said = found[OUTPUT].decode("utf-8", "surrogateescape")
            found[OUTPUT] = hide_profile(said).encode("utf-8", "surrogateescape")
        parts = sorted(
            (int(match["thread"] or 0), name)
            for name in self._host.list_folder(folder)
            if (match := _LOG_PART.fullmatch(name)) is not None
        )
        if parts:
            logs = (part[: part.rfind(b"\n") + 1] for _, part in self._read_each(folder, [name for _, name in parts]))
            found[TRANSACTIONS] = gzip.compress(b"".join(logs), compresslevel=1, mtime=0)
        return found

    def _read_each(self, folder: str, names: Iterable[str]) -> Iterable[tuple[str, bytes]]:
        for name in names:
            try:
                yield name, self._host.read(f"{folder}/{name}")
            except HostFileError:
                continue


def _shares(load: Load) -> tuple[Share, ...]:
    return share_out(load.cell.clients, load.cell.threads, load.seed, load.cpus)


def _script_files(load: Load, folder: str) -> tuple[tuple[str, Script], ...]:
    """Where the scripts of a load lie; numbered, so that equal names from several folders do not collide."""
    if load.cell.scripts:
        scripts, names = load.cell.scripts, [f"script-{number}" for number in range(1, len(load.cell.scripts) + 1)]
    else:
        # the summary says of each script what it is called
        scripts = load.workload.scripts_for(load.cell.options)
        names = [script.file.rpartition("/")[2].removesuffix(".sql") for script in scripts]
    return tuple((f"{folder}/{name}.sql", script) for name, script in zip(names, scripts, strict=True))


def _what_runs(load: Load, folder: str) -> list[str]:
    cell = load.cell
    files = _script_files(load, folder)
    if not files:
        if not load.workload.builtin:
            raise UsageError(
                f"the workload {load.workload.name} has nothing to run",
                where=cell.identity,
                remedy='name its scripts: scripts = [{ file = "my.sql", weight = 1 }]',
            )
        return ["-b", load.workload.builtin]
    options = ["-s", str(cell.scale)]  # pgbench knows the scale of its own scripts only
    for name, value in _options_for_scripts(load).items():
        options += ["-D", f"{name}={value}"]
    for path, script in files:
        options += ["-f", f"{path}@{script.weight}"]
    return options


def _options_for_scripts(load: Load) -> Mapping[str, str]:
    """Options of the workload that its scripts read as variables."""
    usual = {name: option.default for name, option in load.workload.options.items()}
    choices = {name for name, option in load.workload.options.items() if option.choices}
    given = sorted({**usual, **load.cell.options}.items())
    return {
        name: value for name, value in given if name not in _NOT_FOR_SCRIPTS | choices and _VARIABLE.fullmatch(name)
    }


def _logging(sampling_rate: float | None, folder: str) -> list[str]:
    if sampling_rate is None:
        return []
    options = ["-l", f"--log-prefix={folder}/{_LOG_PREFIX}"]
    if sampling_rate < 1:
        options.append(f"--sampling-rate={sampling_rate:.12g}")
    return options


_BUILD_TIMEOUT: Final = 6 * 3600.0


def load_pgbench(host: Host, tools: Build, address: Address, scale: int) -> None:
    """pgbench's own tables and data at that scale; its VACUUM is left out because FREEZE follows."""
    connection = compose_connection(address)
    done = host.run(
        Command(
            argv=(tools.program("pgbench"), "-i", "-q", "-I", "dtgp", "-s", str(scale), *connection.arguments),
            environment={**tools.process_environment, **connection.environment, "LC_ALL": "C"},
            password=connection.password,
            memory=tools.memory,
        ),
        timeout=_BUILD_TIMEOUT,
        check=False,
    )
    if done.code != 0:
        lines = done.complaints.strip().splitlines()
        full = find_disk_full("\n".join(lines))
        raise (DiskFullError if full else ServerFailedError)(
            "the disk is full while a dataset is built" if full else "pgbench could not build the dataset",
            where=f"scale {scale}",
            remedy="free space where the server's data lie, or use a smaller scale" if full else "",
            details=tuple(lines[-5:]),
        )


def verify_sql(scale: int) -> str:
    """A query with one row per check of freshly made data: columns item, expected, found, ok (boolean)."""
    return (files(__package__) / "verify.sql").read_text("utf-8").replace("@scale@", str(int(scale)))
