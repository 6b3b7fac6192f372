"""The tables [[cells]]: lists expand to one cell for each combination; identities are made unique."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Final

from pgstrata.experiment.checkouts import read_checkout
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import MOST, Path, WrongValueError, slug, suggest
from pgstrata.experiment.own_data import read_data
from pgstrata.experiment.schema import CellTable
from pgstrata.experiment.stacks import StackReader, flatten
from pgstrata.experiment.tiers import Tier, resolve_scale
from pgstrata.experiment.values import Rate
from pgstrata.model.draft import LOOK
from pgstrata.model.driver import DEFAULT_DRIVER, Capabilities
from pgstrata.model.experiment import Cell, Environment, Placement, Script
from pgstrata.model.objective import LEAST_STEP, LIMITS_IN_A_STEP, STEPS, Objective, step_seconds
from pgstrata.model.workload import Workload
from pgstrata.units import render_bytes

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_THREADS_PER_CPU: Final = 8
MOST_COPIES: Final = 100
"""Equal sets of tables in one dataset."""
_LABELS: Final[tuple[tuple[str, Callable[[Cell], str]], ...]] = (
    ("driver", lambda cell: cell.driver),
    ("protocol", lambda cell: str(cell.protocol)),
    ("run", lambda cell: f"{cell.run:g}s"),
    ("warmup", lambda cell: "w-auto" if cell.warmup is None else f"w{cell.warmup:g}s"),
    ("threads", lambda cell: f"j{cell.threads}"),
    ("latency_limit", lambda cell: "" if cell.latency_limit is None else f"L{cell.latency_limit * 1000:g}ms"),
    ("scripts", lambda cell: slug("-".join(f"{_stem(one.file)}{one.weight}" for one in cell.scripts))),
    ("options", lambda cell: slug("-".join(f"{key}-{value}" for key, value in cell.options.items()) or "plain")),
    ("data", lambda cell: "" if cell.data is None else slug(cell.data.title)),
    ("checkout", lambda cell: _digest(cell.checkout)[:8]),
    ("profile", lambda cell: "profile" if cell.profile else ""),
    ("until_falls", lambda cell: "ladder" if cell.until_falls else ""),
    ("placement", lambda cell: "" if cell.placement is Placement.AUTO else str(cell.placement)),
)
"""What may tell cells of one workload, scale and number of clients apart, and how it is written."""


def read_cells(
    tables: tuple[CellTable, ...],
    workloads: Mapping[str, Workload],
    reader: StackReader,
    cpus: int,
    drivers: Mapping[str, Capabilities],
    baseline: Environment | None,
) -> tuple[tuple[Cell, ...], tuple[str, ...]]:
    """Cells of the file in order, and notes on scales that follow from tiers; all that is wrong with them is noted.

    `baseline` is what tiers are resolved by, None where something is wrong with the environments.
    """
    findings = reader.findings
    if not tables and not findings.touches(("cells",)):
        remedy = 'add [[cells]] with workload = "simple-update", scale = 10, clients = 4'
        findings.add(("cells",), "the experiment measures nothing: there are no cells", remedy)
    cells: list[tuple[Cell, int]] = []
    notes: list[str] = []
    number = 0
    for index, table in enumerate(tables):
        path: Path = ("cells", index)
        scripts = _read_scripts(table, path, reader)
        data = read_data(table, path, reader)
        _check_table(table, path, findings)
        name = _read_workload(table, path, workloads, findings)
        options = _read_options(table, path, workloads, reader)
        if name is None:
            continue
        known = workloads.get(name)
        driver = _read_driver(table, path, known, drivers, findings)
        checkout = _read_checkout(table, path, known, reader)
        sharing = driver not in drivers or drivers[driver].shares_threads
        data_of = workloads.get("custom" if table.scripts else name)
        scales = (1,) if table.data is not None else _resolve_scales(table, path, data_of, baseline, findings, notes)
        rates = table.rate or (Rate(),)
        number += len(scales) * len(table.clients.numbers) * len(rates)
        if number > MOST:
            remedy = f"use fewer scales, rates or numbers of clients: at most {MOST} cells are allowed"
            findings.add(path, f"too many cells: {number:,} up to and including this table", remedy)
            findings.raise_if_any()
        for scale, clients, rate in product(scales, table.clients.numbers, rates):
            usual = _auto_threads(clients, cpus) if sharing else clients
            threads = usual if table.threads is None else table.threads
            cell = Cell(
                workload=name,
                scale=scale,
                clients=clients,
                threads=threads,
                protocol=table.protocol,
                run=table.run,
                warmup=table.warmup,
                rate=rate.fixed,
                rate_share=rate.share,
                latency_limit=table.latency_limit,
                objective=table.objective,
                scripts=scripts,
                options=options,
                profile=table.profile or (known is not None and known.profile),
                driver=driver,
                placement=table.placement,
                data=data,
                checkout=checkout,
                until_falls=table.clients.until_falls,
            )
            cells.append((cell, index))
    return _labelled(cells, findings), tuple(dict.fromkeys(notes))


def _resolve_scales(
    table: CellTable,
    path: Path,
    workload: Workload | None,
    baseline: Environment | None,
    findings: Findings,
    notes: list[str],
) -> tuple[int, ...]:
    """The scales of a table as numbers; a note for each tier, and no scale where it cannot be resolved."""
    scales: list[int] = []
    for tier in table.scale:
        if not isinstance(tier, Tier):
            scales.append(tier)
        elif workload is not None and baseline is not None:
            try:
                scale, reference = resolve_scale(tier, workload.data, baseline)
            except WrongValueError as error:
                findings.add((*path, "scale"), error.what, error.remedy)
                continue
            scales.append(scale)
            size = render_bytes(workload.data.size(scale))
            notes.append(
                f"scale {scale} of {table.workload or 'custom'} = {tier.text} ({size} of data, {tier.of} of the "
                f"baseline is {render_bytes(reference)}), the same in all environments"
            )
    return tuple(scales)


def _auto_threads(clients: int, cpus: int) -> int:
    """One per client, as far as the machine bears it.

    Clients that share a thread are moved from CPU to CPU together: whether the scheduler has two such threads on one
    CPU then decides for tens of seconds how fast all is (`ONLY=threads make bench`).
    """
    return min(clients, _THREADS_PER_CPU * max(1, cpus))


def _check_table(table: CellTable, path: Path, findings: Findings) -> None:
    given = {"scale": table.scale, "clients": table.clients.numbers}
    for key, example in (("scale", "scale = 10"), ("clients", "clients = [1, 8, 64]")):
        if key == "scale" and (table.data is not None or findings.touches((*path, "data"))):
            continue
        if not given[key] and not findings.touches((*path, key)):
            findings.add((*path, key), f"the cell has no {key}", f"write for example {example}")
    fewest = min(table.clients.numbers, default=0)
    if table.threads is not None and 0 < fewest < table.threads:
        what = f"{table.threads} threads are more than {fewest} clients"
        findings.add((*path, "threads"), what, 'a thread needs a client: write threads = "auto"')
    if table.clients.until_falls:
        for key in ("rate", "objective"):
            if getattr(table, key):
                what = f"{key} and a ladder until throughput falls exclude each other"
                findings.add(
                    (*path, key),
                    what,
                    f"take out {key}, or until in clients: throughput only falls without a fixed rate",
                )
    if table.objective is not None:
        _check_objective(table, table.objective, path, findings)


def _check_objective(table: CellTable, objective: Objective, path: Path, findings: Findings) -> None:
    """Note keys that contradict a search, and a search that is too short."""
    for key in ("rate", "latency_limit", "profile"):
        if getattr(table, key):
            what = f"{key} and an objective exclude each other: the objective searches the rate"
            findings.add((*path, key), what, f"take out {key}, or the objective")
    step = max(LEAST_STEP, math.ceil(LIMITS_IN_A_STEP * objective.limit))
    if step_seconds(table.run) < step and not findings.touches((*path, "run")):
        what = f"a search has {STEPS} steps, and with {objective.text} each must last at least {step} s"
        findings.add((*path, "objective"), what, f'write run = "{STEPS * step}s" or more')


def _read_workload(table: CellTable, path: Path, workloads: Mapping[str, Workload], findings: Findings) -> str | None:
    """The name of the workload; None where there is none."""
    name = table.workload
    place: Path = (*path, "workload")
    if table.scripts or findings.touches((*path, "scripts")):
        return _custom_name(name, place, workloads, findings)
    builtin = tuple(key for key, workload in workloads.items() if _has_scripts(workload))
    if name is None:
        if not findings.touches(place):
            findings.add(place, "the cell has no workload", f"write one of {', '.join(builtin)}, or scripts")
        return None
    if name in builtin:
        return name
    if name in workloads:
        remedy = 'write scripts = [{ file = "script.sql", weight = 1 }]'
        findings.add((*path, "scripts"), f"the workload {name!r} needs scripts", remedy)
    else:
        remedy = suggest(name, builtin) + "; a workload of your own needs scripts"
        findings.add(place, f"there is no workload {name!r}", remedy)
    return None


def _has_scripts(workload: Workload) -> bool:
    return bool(workload.builtin or workload.scripts or workload.checkout)


def _custom_name(name: str | None, place: Path, workloads: Mapping[str, Workload], findings: Findings) -> str | None:
    if name is None:
        return "custom"
    if name in workloads and _has_scripts(workloads[name]):
        remedy = "take out scripts, or give the workload a name of your own"
        findings.add(place, f"{name!r} is built in and has its own script", remedy)
        return None
    if not _NAME.fullmatch(name):
        findings.add(place, f"{name!r} cannot be the name of a workload", "use letters, digits, hyphens, underscores")
        return None
    return name


def _read_driver(
    table: CellTable,
    path: Path,
    workload: Workload | None,
    drivers: Mapping[str, Capabilities],
    findings: Findings,
) -> str:
    """The driver that the cell names, or that of its workload."""
    usual = workload.driver if workload is not None else DEFAULT_DRIVER
    if table.driver is None:
        return usual
    place: Path = (*path, "driver")
    if drivers and table.driver not in drivers:
        findings.add(place, f"there is no driver {table.driver!r}", suggest(table.driver, sorted(drivers)))
    elif workload is not None and _has_scripts(workload) and table.driver not in workload.drivers:
        what = f"{workload.name} has no scripts for the driver {table.driver!r}"
        findings.add(place, what, f"leave out driver: {workload.name} is driven by {' or '.join(workload.drivers)}")
    return table.driver


def _read_checkout(table: CellTable, path: Path, workload: Workload | None, reader: StackReader) -> tuple[Script, ...]:
    """The files of the checkout that the workload begins with, or requires from there."""
    place: Path = (*path, "checkout")
    first = workload.checkout if workload is not None else ""
    if table.checkout is None:
        if first and not reader.findings.touches(place):
            what = f"the workload {table.workload!r} runs {first} from a checkout, and the cell names no checkout"
            reader.findings.add(path, what, 'write checkout = "PATH", the folder that git clone made')
        return ()
    if not first:
        reader.findings.add(place, f"the workload {table.workload!r} uses no checkout", "take it out")
        return ()
    return read_checkout(table.checkout, first, place, reader)


def _digest(scripts: tuple[Script, ...]) -> str:
    return hashlib.sha256("\0".join(script.text for script in scripts).encode()).hexdigest() if scripts else ""


def _read_scripts(table: CellTable, path: Path, reader: StackReader) -> tuple[Script, ...]:
    scripts: list[Script] = []
    for index, entry in enumerate(table.scripts):
        place: Path = (*path, "scripts", index)
        if entry.file is None:
            if not reader.findings.touches((*place, "file")):
                reader.findings.add(place, "the script has no file", 'write { file = "script.sql", weight = 1 }')
            continue
        text = reader.read_text(entry.file, (*place, "file"))
        if text is None:
            continue
        if not text.strip():
            reader.findings.add((*place, "file"), f"the script {entry.file!r} is empty", "write a transaction into it")
        _check_finished(entry.file, text, (*place, "file"), reader.findings)
        scripts.append(Script(file=entry.file, text=text, weight=entry.weight))
    return tuple(scripts)


def _check_finished(file: str, text: str, place: Path, findings: Findings) -> None:
    """Note where a draft asks a person to look."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith(LOOK):
            continue
        findings.add(
            place,
            f"{file}:{number}: the draft is not finished: {line.lstrip().removeprefix(LOOK).strip()[:200]}",
            "give the variable a value (\\set NAME …) or write one in its place, then take out the line with LOOK",
        )


def _read_options(
    table: CellTable, path: Path, workloads: Mapping[str, Workload], reader: StackReader
) -> dict[str, str]:
    options: dict[str, str] = {}
    workload = workloads.get(table.workload or "")
    known = workload.options if workload is not None else {}
    for name, value in flatten(table.options).items():
        place: Path = (*path, "options", name)
        if name != "setup_sql" and name not in known and not table.scripts:
            what = f"the built-in workload {table.workload!r} has no option {name!r}"
            mine = f"it has {', '.join(known)}; " if known else ""
            reader.findings.add(
                place, what, f"{mine}options become variables of your own scripts: add scripts, or take it out"
            )
            continue
        for text in reader.read(f"options.{name}", value, place).values():
            check_choice(workload, name, text, place, reader.findings)
            options[name] = text
    return dict(sorted(options.items()))


def check_choice(workload: Workload | None, name: str, text: str, place: Path, findings: Findings) -> None:
    """Note a value that an option of a workload cannot have."""
    if workload is None or name not in workload.options:
        return
    option = workload.options[name]
    what = f"{name} of {workload.name} cannot be {text!r}"
    if option.choices and text not in option.choices:
        findings.add(place, what, suggest(text, tuple(option.choices)))
    if option.copies and not (text.isdecimal() and text.isascii() and 1 <= int(text) <= MOST_COPIES):
        findings.add(place, what, f"write a whole number from 1 to {MOST_COPIES}")


def _labelled(cells: list[tuple[Cell, int]], findings: Findings) -> tuple[Cell, ...]:
    """Cells whose identities would be the same get labels of what differs; true duplicates are noted."""
    groups: dict[str, list[Cell]] = {}
    for cell, index in cells:
        group = groups.setdefault(cell.identity, [])
        if cell in group:
            what = f"the cell {cell.identity} is listed twice"
            findings.add(("cells", index), what, "take one of the two out; blocks repeat every cell")
        else:
            group.append(cell)
    labels = {identity: _labels(group) for identity, group in groups.items()}
    seen: list[Cell] = []
    for cell, _ in cells:
        identity = cell.identity
        label = labels[identity][groups[identity].index(cell)]
        labelled = replace(cell, label=label)
        if labelled not in seen:
            seen.append(labelled)
    return tuple(seen)


def _labels(group: list[Cell]) -> list[str]:
    if len(group) == 1:
        return [""]
    differing = [write for key, write in _LABELS if any(getattr(cell, key) != getattr(group[0], key) for cell in group)]
    labels: list[str] = []
    for cell in group:
        label = "".join(f"-{part}" for part in (write(cell) for write in differing) if part)
        number, candidate = 2, label
        while candidate in labels:
            candidate, number = f"{label}-{number}", number + 1
        labels.append(candidate)
    return labels


def _stem(file: str) -> str:
    return file.rpartition("/")[2].rpartition(".")[0] or file.rpartition("/")[2]
