"""How environments, factors and cells are called in sentences, tables and charts."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import Cell, ControlKind, Environment, Experiment, Level
from pgstrata.model.objective import Objective
from pgstrata.units import printable, render_bytes, render_count, render_duration, render_names, shorten

_AGAIN = {
    ControlKind.SAME: "a second time",
    ControlKind.REBOOT: "booted a second time",
    ControlKind.REBUILD: "on data built anew",
}
TOGETHER: Final = "all cells together"
_LONGEST_LEVEL: Final = 80
_LONGEST_LABEL: Final = 60
_MOST_LABELS: Final = 6
_OF_BYTES: Final = frozenset({"vm.memory", "limits.memory", "limits.read_bytes", "limits.write_bytes"})


def name_environment(environment: Environment, experiment: Experiment) -> str:
    """What the user calls it, or its levels; where two environments would be called alike, its own name too."""
    title = _call(environment)
    alike = sum(_call(other) == title for other in experiment.environments if other.control is environment.control)
    if alike > 1 and environment.name != title:
        title = f"{title} [{environment.name}]"
    if environment.control is not None:
        return f"{title} {_AGAIN[environment.control]}"
    return title


def say_labels(experiment: Experiment) -> str:
    """What the user's names stand for: tuned is 18 (shared_buffers = 8GB); empty where they say all there is."""
    named = [each for each in experiment.environments if each.label and each.control is None]
    texts = [f"{_call(each)} is {shorten(_levels(each), _LONGEST_LEVEL)}" for each in named if _is_told(each)]
    return render_names(texts, _MOST_LABELS)


def _is_told(environment: Environment) -> bool:
    """Whether its levels say more than what the user calls it."""
    return _levels(environment) not in {_call(environment), environment.name}


def _call(environment: Environment) -> str:
    return shorten(printable(environment.label), _LONGEST_LABEL) or _levels(environment)


def _levels(environment: Environment) -> str:
    """Its levels; its own name where one of them is as long as a script."""
    if not environment.levels:
        return environment.server.text
    first, *others = (_render_level(level) for level in environment.levels)
    if max(map(len, (first, *others))) > _LONGEST_LEVEL:
        return environment.name
    return f"{first} ({', '.join(others)})" if others else first


def _render_level(level: Level) -> str:
    if level.factor == "server":
        return level.value
    value = render_bytes(int(level.value)) if level.factor in _OF_BYTES and level.value.isdecimal() else level.value
    return f"{name_factor(level.factor)} = {value}"


def name_both(environment: str, reference: str, experiment: Experiment) -> tuple[str, str]:
    """What is compared, and what with."""
    first, second = (name_environment(experiment.environment(name), experiment) for name in (environment, reference))
    return first, second


def name_difference(environment: str, reference: str, cell: str, experiment: Experiment) -> str:
    """18 against 16: simple-update, scale 10, 2 clients."""
    first, second = name_both(environment, reference, experiment)
    return f"{first} against {second}: {name_cell(experiment.cell(cell), experiment)}"


def name_factor(factor: str) -> str:
    """A factor as people call it: settings go by their own names."""
    return factor.removeprefix("settings.")


def name_cell(cell: Cell, experiment: Experiment) -> str:
    """simple-update, scale 10, 2 clients; where two cells would be called alike, what tells them apart too."""
    text = _describe(cell)
    alike = Counter(_describe(other) for other in experiment.cells)[text]
    return f"{text} [{cell.identity}]" if alike > 1 else text


def name_place(comparison_cell: str, experiment: Experiment) -> str:
    """The cell of a comparison by its identity; "all" is the mean over the cells."""
    if comparison_cell == ALL_CELLS:
        return TOGETHER
    return name_cell(experiment.cell(comparison_cell), experiment)


def name_where(comparison_cell: str, experiment: Experiment) -> str:
    """The cell of a comparison within a sentence: its workload, and of the rest only what differs between the cells."""
    if comparison_cell == ALL_CELLS:
        return TOGETHER
    cell = experiment.cell(comparison_cell)
    text = _say_where(cell, experiment)
    alike = sum(_say_where(other, experiment) == text for other in experiment.cells)
    return f"{text} [{cell.identity}]" if alike > 1 else text


def say_on(place: str, after: str = "") -> str:
    """On simple-update; over all cells together. A comma stands before it if the text before, `after`, ends with on."""
    if place.startswith(TOGETHER):
        return f" over {place}"
    return f", on {place}" if after.split()[-1:] == ["on"] else f" on {place}"


def _say_where(cell: Cell, experiment: Experiment) -> str:
    common = set(_common_parts(experiment))
    return " ".join([cell.workload, *(part for part in _parts(cell) if part not in common)])


def say_common(experiment: Experiment) -> str:
    """What all cells share beside the workload, to be said once: all at scale 10 with 2 clients; empty for nothing."""
    common = _common_parts(experiment)
    return " ".join(["all", *common]) if common else ""


def _common_parts(experiment: Experiment) -> list[str]:
    first, *others = [_parts(cell) for cell in experiment.cells]
    return [part for part in first if all(part in parts for parts in others)]


def _parts(cell: Cell) -> list[str]:
    rate = [f"at {say_rate(cell)}"] if cell.paced else []
    limit = [f"keeping {cell.objective.text}"] if cell.objective is not None else []
    return [say_size(cell), f"with {count(cell.clients, 'client')}", *rate, *limit]


def say_size(cell: Cell) -> str:
    """At scale 10; on data by the dump prod.dump."""
    return f"at scale {cell.scale}" if cell.data is None else f"on {cell.size}"


def say_rate(cell: Cell) -> str:
    """500 transactions/s; 80 % of maximum."""
    if cell.rate is not None:
        return f"{cell.rate:g} transactions/s"
    return f"{100 * (cell.rate_share or 0):g} % of maximum"


def say_objectives(experiment: Experiment) -> str:
    """With p99 below 20 ms; of several objectives that each is kept."""
    found = {cell.objective for cell in experiment.cells if cell.objective is not None}
    return say_objective(found.pop()) if len(found) == 1 else "within their limits of latency"


def say_objective(objective: Objective) -> str:
    """With p99 below 20 ms."""
    of = "a mean latency" if objective.of == "mean" else objective.of
    return f"with {of} below {render_duration(objective.limit)}"


def _describe(cell: Cell) -> str:
    clients = "1 client" if cell.clients == 1 else f"{cell.clients} clients"
    rate = f", {say_rate(cell)}" if cell.paced else ""
    limit = f", {cell.objective.text}" if cell.objective is not None else ""
    return f"{cell.workload}, {cell.size}, {clients}{rate}{limit}"


_NO_TPC: Final = "but no audited TPC result, and not to be compared with one"
_CLAIMS: Final = {
    "tpcc": f"order entry as in TPC-C, {_NO_TPC}",
    "sysbench-tpcc": f"order entry as sysbench-tpcc has it, {_NO_TPC}",
}


def say_claim(cell: Cell) -> str:
    """Disclaimer beside the figures of a cell; empty for most."""
    return "" if cell.scripts else _CLAIMS.get(cell.workload, "")


count: Final = render_count


def join_names(names: Sequence[str]) -> str:
    """15; 15 and 16; 15, 16 and 17."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


# With these a sentence may begin; anything else is the name of an environment.
_FIRST_WORDS: Final = (
    "no ", "the ", "too ", "nothing ", "an ", "a ", "all ", "not ", "stopped ", "both ", "median ", "single ",
    "effect ", "along ", "factors, ", "found ", "this ", "transactions ", "value for ",
    "cannot ",
)  # fmt: skip


def capitalise(text: str) -> str:
    """First letter upper case, the rest as it is; environments keep their spelling."""
    return text[:1].upper() + text[1:] if text.startswith(_FIRST_WORDS) else text
