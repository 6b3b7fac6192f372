"""From a file on disk, or a text, to a plan: read, parse, complete, plan, look up floors. Nothing is changed."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pgstrata.app.host_floors import fit_designs, with_floors
from pgstrata.app.places import capacity_here, expand_home
from pgstrata.app.remote_memory import complete_by_hosts
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import UsageError
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model import sizes
from pgstrata.model.experiment import Environment, Experiment, ServerKind
from pgstrata.model.plan import HostCapacity, Plan
from pgstrata.model.secret import Secret
from pgstrata.model.workload import Workload
from pgstrata.plan import make_plan
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.system.files import read_regular
from pgstrata.workloads import builtin_workloads


def load_plan(
    file: Path,
    *,
    seed: int | None = None,
    budget: float | None = None,
    conninfo: Mapping[str, Secret] | None = None,
    sure: bool = True,
    query_text: bool = True,
) -> Plan:
    """The plan of an experiment file, with the noise floors that are known here of its cells.

    `sure` as in `complete_by_hosts`: what is only shown needs no other machine to be there. Without `query_text` it is
    the plan of the file with `query_text = false`.

    Raises:
        ExperimentError, PlanRefusedError: there is no plan.
        HostNotFitError, HostLostError: another machine cannot be asked for its memory.
    """
    workloads = builtin_workloads()
    plan = plan_text(
        read_experiment(file), str(file), workloads, folder=file.parent, seed=seed, budget=budget, conninfo=conninfo,
        sure=sure, query_text=query_text,
    )  # fmt: skip
    return with_floors(plan, workloads)


def plan_text(  # noqa: PLR0913 - what `load_plan` takes, each named
    text: str,
    source: str,
    workloads: Mapping[str, Workload],
    *,
    folder: Path,
    seed: int | None = None,
    budget: float | None = None,
    conninfo: Mapping[str, Secret] | None = None,
    sure: bool = True,
    query_text: bool = True,
) -> Plan:
    """The plan of an experiment that is given as text, without floors; the files that it names lie in `folder`.

    Its designs follow what is known here of the scatter of its cells.
    """
    capacity = capacity_here()
    experiment = parse_text(
        text, source, workloads, capacity, folder=folder, seed=seed, budget=budget, conninfo=conninfo
    )
    experiment = experiment if query_text else replace(experiment, query_text=False)
    complete, capacity = complete_by_hosts(experiment, capacity, workloads, sure=sure)
    return plan_experiment(complete, workloads, capacity)


def parse_text(  # noqa: PLR0913 - what `parse_experiment` takes, each named
    text: str,
    source: str,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    *,
    folder: Path,
    seed: int | None = None,
    budget: float | None = None,
    conninfo: Mapping[str, Secret] | None = None,
    lone: bool = False,
) -> Experiment:
    """The experiment that is given as text, its paths absolute; `lone`: one environment is enough."""
    experiment = parse_experiment(
        text,
        source,
        read_file=_ScriptReader(folder),
        workloads=workloads,
        cpus=capacity.cpus,
        seed=seed,
        budget=budget,
        conninfo=conninfo,
        lone=lone,
    )
    return _with_absolute_prefixes(experiment, folder.absolute())


def plan_experiment(experiment: Experiment, workloads: Mapping[str, Workload], capacity: HostCapacity) -> Plan:
    """The plan of a complete experiment, its designs fitted to the scatter that is known here, without floors."""
    make = partial(make_plan, experiment, workloads, capacity, drivers=driver_capabilities(), say=say_reason)
    plan = make()
    designs = fit_designs(plan, workloads)
    return plan if designs == plan.designs else make(designs=designs)


def _with_absolute_prefixes(experiment: Experiment, folder: Path) -> Experiment:
    """A relative prefix or source is relative to the experiment file, wherever the command is given."""

    def absolute(environment: Environment) -> Environment:
        server = environment.server
        if server.kind not in {ServerKind.PREFIX, ServerKind.BUILD}:
            return environment
        path = Path(os.path.normpath(folder / expand_home(server.value)))
        return replace(environment, server=replace(server, value=str(path)))

    return replace(experiment, environments=tuple(absolute(environment) for environment in experiment.environments))


class _ScriptReader:
    """Reads the files that an experiment names, each once, as far as all together are not too large."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._left = sizes.SCRIPTS

    def __call__(self, name: str) -> str:
        """OSError, UnicodeDecodeError."""
        if name not in self._texts:
            text = _read_text(self._folder / name, most=sizes.SCRIPT)
            self._left -= len(text)
            if self._left < 0:
                raise OSError(errno.EFBIG, f"all scripts together are larger than {sizes.SCRIPTS >> 20} MiB", name)
            self._texts[name] = text
        return self._texts[name]


def _read_text(path: Path, *, most: int) -> str:
    """A text with ends of lines as here; OSError, UnicodeDecodeError."""
    return io.StringIO(read_regular(path, most=most).decode(), newline=None).read()


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
