"""From a file on disk, or a text, to a plan: read, parse, complete, plan, look up floors. Nothing is changed.

Other machines are asked for their memory where settings follow from it.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TypedDict, Unpack

from pgstrata.app.data_files import DataFiles
from pgstrata.app.host_floors import with_floors
from pgstrata.app.places import capacity_here, expand_home, find_machine_places, observe_memory
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import HostLostError, HostNotFitError, UsageError
from pgstrata.experiment.defaults import complete_experiment, hosts_to_ask
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model import sizes
from pgstrata.model.boot import boot_of
from pgstrata.model.experiment import Cell, Environment, Experiment, HostKind, HostSpec, ServerKind
from pgstrata.model.plan import HORIZON, HostCapacity, Plan
from pgstrata.model.secret import Secret
from pgstrata.model.workload import Workload
from pgstrata.plan import make_plan
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.system.reading import read_own, read_regular
from pgstrata.workloads import builtin_workloads

_GIVE: Final = "or give shared_buffers and effective_cache_size in the file"


def complete_by_hosts(
    experiment: Experiment, capacity: HostCapacity, workloads: Mapping[str, Workload], *, sure: bool = True
) -> tuple[Experiment, HostCapacity]:
    """The experiment with a value for each setting that nobody gave, by the memory of all machines with servers.

    Also the capacity with the memory of those that were asked; where no setting hangs on it nobody is.

    Args:
        experiment: as parsed.
        capacity: this machine.
        workloads: those that exist, by name.
        sure: another machine has to be there; otherwise one that is not is left out, with a note that says so.

    Raises:
        HostNotFitError, HostLostError: another machine cannot be asked.
    """
    memories: dict[HostSpec, int] = {}
    notes: list[str] = []
    for spec in hosts_to_ask(experiment):
        if spec.kind is HostKind.VM:
            here = experiment.on_host(spec).environments
            memories[spec] = min(boot_of(each).memory for each in here)
            continue
        try:
            memories[spec] = _ask(spec)
        except (HostLostError, HostNotFitError) as error:
            if sure:
                error.remedy = "; ".join(filter(None, (error.remedy, _GIVE)))
                raise
            notes.append(
                f"{spec.text} cannot be asked how much memory it has ({error.what}): sizes that follow from its memory "
                f"may change once it answers; {_GIVE}"
            )
    noted = replace(experiment, notes=(*experiment.notes, *notes))
    known = replace(capacity, elsewhere=memories)
    return complete_experiment(noted, known, workloads), known


def _ask(spec: HostSpec) -> int:
    from pgstrata.app.site import open_site  # noqa: PLC0415 - most plans need no other machine

    with open_site(spec.destination) as site:
        return observe_memory(site.transport)


class Given(TypedDict, total=False):
    """What the command line says instead of the file, or of its masked passwords; `lone`: one environment is enough."""

    seed: int | None
    budget: float | None
    conninfo: Mapping[str, Secret] | None
    lone: bool


def load_plan(
    file: Path, *, blocks: int | None = None, sure: bool = True, query_text: bool = True, **given: Unpack[Given]
) -> Plan:
    """The plan of an experiment file, with the noise floors that are known here of its cells.

    `sure` as in `complete_by_hosts`: what is only shown needs no other machine to be there. `blocks` replace those of
    the file. Without `query_text` it is the plan of the file with `query_text = false`.

    Raises:
        UsageError: there cannot be so many blocks.
        ExperimentError, PlanRefusedError: there is no plan.
        HostNotFitError, HostLostError: another machine cannot be asked for its memory.
    """
    text, workloads = read_experiment(file), builtin_workloads()
    plan = plan_text(
        text, str(file), workloads, folder=file.parent, blocks=blocks, sure=sure, query_text=query_text, **given
    )
    return with_floors(plan, workloads)


def plan_text(
    text: str,
    source: str,
    workloads: Mapping[str, Workload],
    *,
    folder: Path,
    blocks: int | None = None,
    sure: bool = True,
    query_text: bool = True,
    **given: Unpack[Given],
) -> Plan:
    """The plan of an experiment that is given as text, without floors; the files that it names lie in `folder`."""
    capacity = capacity_here()
    experiment = parse_text(text, source, workloads, capacity, folder=folder, sure=sure, **given)
    experiment = experiment if query_text else replace(experiment, query_text=False)
    if blocks is not None:
        _refuse_blocks(blocks)
        experiment = replace(experiment, blocks=blocks)
    complete, capacity = complete_by_hosts(experiment, capacity, workloads, sure=sure)
    return plan_experiment(complete, workloads, capacity)


def _refuse_blocks(blocks: int) -> None:
    if not 1 <= blocks <= HORIZON:
        raise UsageError(
            f"a study cannot have {blocks} blocks",
            where="--blocks",
            remedy=f"give an integer from 1 to {HORIZON}, over which the error probability is spent",
        )


def parse_text(
    text: str,
    source: str,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    *,
    folder: Path,
    sure: bool = True,
    **given: Unpack[Given],
) -> Experiment:
    """The experiment that is given as text, its paths absolute; to be `sure`, large files with data are read."""
    reader = _ScriptReader(folder)
    looking = DataFiles(folder, Path(find_machine_places().cache) / "digests.json", sure=sure)
    experiment = parse_experiment(
        text,
        source,
        read_file=reader,
        look_at=looking,
        read_program=reader.read_program,
        workloads=workloads,
        cpus=capacity.cpus,
        drivers=driver_capabilities(),
        **given,
    )
    return _with_absolute_paths(experiment, folder.absolute())


def plan_experiment(experiment: Experiment, workloads: Mapping[str, Workload], capacity: HostCapacity) -> Plan:
    """The plan of a complete experiment, without floors."""
    return make_plan(experiment, workloads, capacity, drivers=driver_capabilities(), say=say_reason)


def _with_absolute_paths(experiment: Experiment, folder: Path) -> Experiment:
    """Prefixes, sources and commands are relative to the experiment file, wherever the command is given."""

    def placed(cell: Cell) -> Cell:
        return cell if cell.data is None else replace(cell, data=replace(cell.data, folder=str(folder)))

    def absolute(environment: Environment) -> Environment:
        server = environment.server
        if server.kind not in {ServerKind.PREFIX, ServerKind.BUILD}:
            return environment
        path = Path(os.path.normpath(folder / expand_home(server.value)))
        return replace(environment, server=replace(server, value=str(path)))

    environments = tuple(absolute(environment) for environment in experiment.environments)
    return replace(experiment, environments=environments, cells=tuple(map(placed, experiment.cells)))


class _ScriptReader:
    """Reads the files that an experiment names, each once, as far as all together are not too large."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._left = sizes.SCRIPTS

    def __call__(self, name: str) -> str:
        """OSError, UnicodeDecodeError."""
        return self._read(name, read_regular)

    def read_program(self, name: str) -> str:
        """Text of a file that will be executed; OSError also where pgstrata is root and another user may change it."""
        return self._read(name, read_own)

    def _read(self, name: str, read: Callable[..., bytes]) -> str:
        if name not in self._texts:
            text = _read_text(self._folder / name, most=sizes.SCRIPT, read=read)
            self._left -= len(text)
            if self._left < 0:
                raise OSError(errno.EFBIG, f"all scripts together are larger than {sizes.SCRIPTS >> 20} MiB", name)
            self._texts[name] = text
        return self._texts[name]


def _read_text(path: Path, *, most: int, read: Callable[..., bytes] = read_regular) -> str:
    """A text with ends of lines as here; OSError, UnicodeDecodeError."""
    return io.StringIO(read(path, most=most).decode(), newline=None).read()


def read_experiment(path: Path) -> str:
    """The text of an experiment file; UsageError where it cannot be read."""
    try:
        return _read_text(path, most=sizes.EXPERIMENT_FILE)
    except FileNotFoundError:
        raise UsageError(
            "there is no such file", where=str(path), remedy="`pgstrata init` writes one to start from"
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the file is not UTF-8: {error.reason} at byte {error.start}",
            where=str(path),
            remedy="save it as UTF-8, as TOML asks for",
        ) from None
    except OSError as error:
        remedies = {errno.EINVAL: "name a regular file", errno.EFBIG: "name a smaller file"}
        other = remedies.get(error.errno or 0, "check its owner and permissions")
        remedy = "name the file in it" if path.is_dir() else other
        raise UsageError(f"the file cannot be read: {error.strerror}", where=str(path), remedy=remedy) from None
