"""Starts sysbench on a host and collects what it leaves; reading that is `parse`'s part.

One folder holds one execution: sysbench.out, sysbench.err, and the scripts that are not sysbench's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Final

from pgstrata.drivers.progress import read_new
from pgstrata.drivers.sysbench import CAPABILITIES, NAME
from pgstrata.drivers.sysbench.loading import checkout_options, table_options
from pgstrata.drivers.sysbench.parse import ERRORS, OUTPUT, SysbenchParser, hide_query, parse_progress
from pgstrata.drivers.sysbench.program import compose_command, observe_sysbench, put_scripts
from pgstrata.errors import UsageError
from pgstrata.model.experiment import Protocol, Script
from pgstrata.ports.clients import ClientProcesses
from pgstrata.ports.driver import Load, ProgressPoint, Statement
from pgstrata.ports.host import Host, Process, StopSignal
from pgstrata.ports.steps import Steps

_LEAST: Final = "least.lua"
_COUNTING: Final = "pgstrata_counting.lua"
_MODES: Final = {Protocol.SIMPLE: "disable", Protocol.PREPARED: "auto"}
_LARGEST_SEED: Final = 2**31 - 1


class SysbenchDriver(SysbenchParser):
    """sysbench of the client's host, found by its PATH.

    Args:
        host: where sysbench runs.
    """

    capabilities = CAPABILITIES

    def __init__(self, host: Host) -> None:
        self._host = host
        self._facts: Mapping[str, str] | None = None

    def facts(self) -> Mapping[str, str]:
        """As `observe_sysbench`, once."""
        if self._facts is None:
            self._facts = observe_sysbench(self._host)
        return self._facts

    def statements(self, load: Load) -> tuple[Statement, ...]:  # noqa: ARG002 - the Protocol's
        return ()  # they stand in Lua code

    def least_load(self, load: Load) -> Load | None:
        bare = replace(load.cell, scripts=(_own_script(_LEAST),), rate=None, options={}, checkout=())
        return replace(load, cell=bare)

    def session_names(self, load: Load) -> Mapping[str, int]:  # noqa: ARG002 - the Protocol's
        return {}

    def start(self, load: Load, folder: str, *, on_parent_death: StopSignal = StopSignal.TERM) -> ClientProcesses:
        scripts = _scripts(load)
        script = put_scripts(self._host, folder, scripts) if scripts else load.workload.builtin
        words = (*_what_runs(load), *_options(load), script, "run")
        command = compose_command(load.address, words, launch=load.launch, folder=folder)
        process = self._host.spawn(
            command, stdout=f"{folder}/{OUTPUT}", stderr=f"{folder}/{ERRORS}", on_parent_death=on_parent_death
        )
        return ClientProcesses(processes=[process])

    def end(self, process: Process) -> None:  # noqa: ARG002 - the Protocol's
        raise AssertionError("a driver that is not pausable is measured run by run")

    def counting(self, folder: str, marks: str, arm: int) -> Steps[Mapping[str, bytes]]:  # noqa: ARG002 - the Protocol's
        raise AssertionError("a driver that is not pausable is measured run by run")

    def progress(self, folder: str, offset: int) -> tuple[tuple[ProgressPoint, ...], int]:
        return read_new(self._host, f"{folder}/{OUTPUT}", offset, parse_progress)

    def collect(self, folder: str) -> Mapping[str, bytes]:
        """Output and complaints, as far as they are there; all but the constants of statements that failed."""
        read = self._host.read_files([f"{folder}/{name}" for name in (OUTPUT, ERRORS)])
        found = {path.rpartition("/")[2]: content for path, content in read.items()}
        if OUTPUT in found:
            said = found[OUTPUT].decode("utf-8", "surrogateescape")
            found[OUTPUT] = hide_query(said).encode("utf-8", "surrogateescape")
        return found


def _scripts(load: Load) -> tuple[Script, ...]:
    """The files that are not sysbench's own, the one that it starts with first; none for a script of its own."""
    cell = load.cell
    if cell.checkout and not cell.scripts:
        first = cell.checkout[0].file.removesuffix(".lua")
        return _own_script(_COUNTING, first=first), *cell.checkout
    return cell.scripts or load.workload.scripts_for(cell.options, NAME)


def _own_script(name: str, *, first: str = "") -> Script:
    """A script of this folder, `first` being the module that it begins with."""
    text = (files(__package__) / name).read_text("utf-8")
    return Script(file=name, text=text.replace("@first@", first))


def _what_runs(load: Load) -> tuple[str, ...]:
    """Options that the script knows; sysbench refuses unknown ones.

    Scripts of a workload know `scale`, and its options but those that they need to have a certain value.
    """
    cell, workload = load.cell, load.workload
    if cell.scripts:
        return ()
    if cell.checkout:
        return checkout_options(cell)
    values = workload.values(cell.options)
    if workload.scripts_for(cell.options, NAME):
        fixed = workload.fixed_options(NAME)
        return f"--scale={cell.scale}", *(f"--{key}={value}" for key, value in values.items() if key not in fixed)
    if not workload.builtin or workload.driver != NAME:
        raise UsageError(
            f"the workload {workload.name} has nothing that {NAME} could run with these options",
            where=cell.identity,
            remedy=f'write driver = "{workload.driver}"',
        )
    return *table_options(cell.scale), f"--rand-type={values['access']}"


def _options(load: Load) -> tuple[str, ...]:
    cell = load.cell
    options = [f"--threads={cell.clients}", f"--rand-seed={_seed(load.seed)}"]
    options += [f"--db-ps-mode={_MODES[cell.protocol]}", "--histogram=on", "--percentile=99"]
    if load.transactions is not None:
        options += [f"--events={load.transactions * cell.clients}", "--time=0"]
    else:
        options.append(f"--time={max(1, math.ceil(load.seconds))}")
    if load.progress is not None:
        options.append(f"--report-interval={load.progress}")
    if cell.rate is not None:
        if not cell.rate.is_integer():
            raise UsageError(f"{NAME} keeps rates of whole numbers only", where=cell.identity, remedy="round the rate")
        options.append(f"--rate={cell.rate:.0f}")
    return tuple(options)


def _seed(seed: int) -> int:
    """sysbench takes 0 for the time of day, and nothing beyond 31 bits."""
    return (seed - 1) % _LARGEST_SEED + 1
