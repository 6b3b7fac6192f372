"""From factors, or a list, to environments; which of them is the baseline; which may stand side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from pgstrata.experiment.conflicts import check_boots, check_hosts, check_storage, usual_connection
from pgstrata.experiment.factors import Factor, LevelChoice, read_factors
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.hosts import USUAL_CLIENT, ClientLevel, parse_clients
from pgstrata.experiment.keys import MOST, Path, WrongValueError, slug, suggest, unique
from pgstrata.experiment.registry import factor_keys, is_of_host
from pgstrata.experiment.restarts import with_restarts
from pgstrata.experiment.schema import AllowTable, ExperimentFile
from pgstrata.experiment.servers import mask_conninfo, parse_server, server_slugs
from pgstrata.experiment.stacks import Stack, StackReader, flatten, render_scalar
from pgstrata.model.experiment import (
    ConnectionKind,
    ControlKind,
    Environment,
    HostSpec,
    Level,
    ServerKind,
    ServerSpec,
)

_DEFAULT_SERVER = ServerSpec(kind=ServerKind.EMBEDDED)
# Controls, and what is added to the name of the baseline.
_OF_ANY_SERVER: Final = frozenset({"server", "host", "client", "options"})
_CONTROL_NAMES: Final = {ControlKind.SAME: "control", ControlKind.REBOOT: "reboot", ControlKind.REBUILD: "rebuild"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """The environments in order, the name of the baseline, and the keys of the factors."""

    all: tuple[Environment, ...]
    baseline: str
    factors: tuple[str, ...]


def read_environments(file: ExperimentFile, reader: StackReader, *, lone: bool = False) -> Environments:
    """Environments of the file; all that is wrong with them is noted, and what can be read comes back.

    With `lone` a single one is enough: what it is compared with comes from elsewhere.
    """
    findings = reader.findings
    common = reader.read_table(file.common, ("common",))
    factors = read_factors(file.factors, reader)
    listed = bool(file.environments) or findings.touches(("environments",))
    if listed and file.factors:
        remedy = "keep one: [factors] crosses levels, [[environments]] lists combinations one by one"
        findings.add(("environments",), "cannot be combined with [factors]", remedy)
    if listed:
        _refuse_many_listed(file.environments, findings)
        environments = _listed(file.environments, common, reader)
        keys = _varying(environments)
    else:
        _note_useless(factors, file.common, findings)
        _refuse_many(factors, findings)
        environments = _crossed(factors, common)
        keys = tuple(factor.key for factor in factors)
    baseline = _find_baseline(file.baseline, environments, factors, findings)
    if not lone:
        _check_number(environments, factors, file, findings)
    _check_suppliers(environments, file.allow, listed, findings)
    _check_running(environments, factors, file, findings)
    environments = with_restarts(environments, file.restart, file.reset, findings)
    check_hosts(environments, file, findings)
    check_boots(environments, file, findings)
    check_storage(environments, file, findings)
    _check_builds(environments, listed, findings)
    return Environments(all=_with_controls(environments, baseline, file.controls), baseline=baseline, factors=keys)


def _refuse_many(factors: tuple[Factor, ...], findings: Findings) -> None:
    """Refuse too many environments before they are made: forty factors of two levels make a million million."""
    if len(factors) > MOST:
        findings.add(("factors",), f"too many factors: {len(factors):,}", f"use at most {MOST}")
        findings.raise_if_any()
    number = math.prod(len(factor.choices) for factor in factors)
    if number > MOST:
        remedy = f"use fewer factors or levels, or list those you need as [[environments]]: at most {MOST}"
        findings.add(("factors",), f"too many environments: the levels combine to {number:,}", remedy)
        findings.raise_if_any()


def _refuse_many_listed(tables: tuple[Mapping[str, Any], ...], findings: Findings) -> None:
    if len(tables) > MOST:
        remedy = f"list at most {MOST} environments, or split the experiment"
        findings.add(("environments",), f"too many environments: {len(tables):,} are listed", remedy)
        findings.raise_if_any()


def _crossed(factors: tuple[Factor, ...], common: Stack) -> tuple[Environment, ...]:
    """The full cross; the last factor varies fastest."""
    combinations = list(product(*(factor.choices for factor in factors)))
    names = unique(_crossed_name(choices, common) for choices in combinations)
    stacks = [_overlay(choices, common) for choices in combinations]
    usual = usual_connection(stacks)
    return tuple(
        _environment(name, tuple(choice.level for choice in choices), stack, usual)
        for name, choices, stack in zip(names, combinations, stacks, strict=True)
    )


def _crossed_name(choices: tuple[LevelChoice, ...], common: Stack) -> str:
    if not choices:
        return slug(server_slugs([common.get("server", _DEFAULT_SERVER)])[0])
    return slug("-".join(choice.slug for choice in choices))


def _overlay(choices: tuple[LevelChoice, ...], common: Stack) -> Stack:
    return {**common, **{key: value for choice in choices for key, value in choice.stack.items()}}


def _environment(name: str, levels: tuple[Level, ...], stack: Stack, usual: ConnectionKind) -> Environment:
    server: ServerSpec = stack.get("server", _DEFAULT_SERVER)
    build, host = _within(stack, "build"), stack.get("host", HostSpec())
    clients: ClientLevel = stack.get("client", USUAL_CLIENT)
    return Environment(
        name=name,
        levels=levels,
        # how a server is built belongs to the server; no layer of the host has to be changed for it
        server=replace(server, build=tuple(build.items())) if build else server,
        host=host,
        client_hosts=clients.beside(host),
        connection=stack.get("connection", usual),
        checksums=stack.get("checksums", True),
        placement=stack.get("placement"),
        settings=_within(stack, "settings"),
        initdb=_within(stack, "initdb"),
        options=_within(stack, "options"),
        layers={key: text for key, text in sorted(stack.items()) if is_of_host(key)},
    )


def _within(stack: Stack, table: str) -> dict[str, str]:
    head = f"{table}."
    return {key.removeprefix(head): text for key, text in sorted(stack.items()) if key.startswith(head)}


def _listed(tables: tuple[Mapping[str, Any], ...], common: Stack, reader: StackReader) -> tuple[Environment, ...]:
    stacks = [reader.read_table(table, ("environments", index)) for index, table in enumerate(tables)]
    names: set[str] = set()
    for index, table in enumerate(tables):
        path: Path = ("environments", index, "name")
        name = table.get("name", "")
        if not name and not reader.findings.touches(path):
            reader.findings.add(path, "every listed environment needs a name", 'write name = "18 async"')
        elif name in names:
            reader.findings.add(path, f"the name {name!r} is taken", "give it another name")
        names.add(name)
    written = [mask_conninfo(table.get("name", "")) for table in tables]
    slugs = unique(map(slug, written))
    usual = usual_connection({**common, **stack} for stack in stacks)
    return tuple(
        replace(
            _environment(name, _declared(stack, flatten(table)), {**common, **stack}, usual),
            label=" ".join(called.split()),
        )
        for name, called, stack, table in zip(slugs, written, stacks, tables, strict=True)
    )


def _declared(stack: Stack, written: Mapping[str, Any]) -> tuple[Level, ...]:
    """Everything that a listed environment says for itself, as levels; those of layers last."""
    every = sorted(stack.items(), key=lambda entry: is_of_host(entry[0]) or entry[0].startswith("build."))
    return tuple(Level(factor=key, value=_level(key, value, written)) for key, value in every)


def _level(key: str, value: object, written: Mapping[str, Any]) -> str:
    """The text of a level; levels of layers and names of files as they were written, not as bytes or contents."""
    if key in written and (is_of_host(key) or key == "options.setup_sql"):
        return mask_conninfo(render_scalar(written[key]))
    if isinstance(value, ServerSpec | HostSpec | ClientLevel):
        return value.text
    return render_scalar(value) if isinstance(value, bool) else str(value)


def _varying(environments: tuple[Environment, ...]) -> tuple[str, ...]:
    levels = [{level.factor: level.value for level in environment.levels} for environment in environments]
    keys = dict.fromkeys(key for each in levels for key in each)
    return tuple(key for key in keys if len({each.get(key) for each in levels}) > 1)


def _note_useless(factors: tuple[Factor, ...], common: Mapping[str, Any], findings: Findings) -> None:
    """A common value beneath a factor never takes effect; two factors on one setting contradict each other."""
    singles = {factor.key for factor in factors}
    for key in sorted(flatten(common).keys() & singles):
        path: Path = ("common", *key.split(".", 1))
        findings.add(path, "is a factor too, so this value never takes effect", "take out one of the two")
    for factor in (factor for factor in factors if factor.key == "settings"):
        for choice in factor.choices:
            for name in (key.removeprefix("settings.") for key in choice.stack if key in singles):
                path = ("factors", "settings", choice.level.value, name)
                findings.add(path, f"{name} is a factor of its own too", "take it out of one of the two")


def _find_baseline(
    baseline: str | Mapping[str, Any] | None,
    environments: tuple[Environment, ...],
    factors: tuple[Factor, ...],
    findings: Findings,
) -> str:
    if not environments:
        return ""
    first = environments[0].name
    if baseline is None or findings.touches(("factors",)) or findings.touches(("environments",)):
        return first
    if isinstance(baseline, Mapping) and set(baseline) == {"name"}:
        baseline = str(baseline["name"])
    if isinstance(baseline, str):
        return _named_baseline(baseline, environments, findings) or first
    wanted = {key: _level_text(key, value) for key, value in flatten(baseline).items()}
    if not _known_baseline(wanted, environments, findings):
        return first
    defaults = {factor.key: factor.choices[0].level.value for factor in factors if factor.choices}
    wanted = {**defaults, **wanted}
    for environment in environments:
        levels = {level.factor: level.value for level in environment.levels}
        if all(levels.get(key) == value for key, value in wanted.items()):
            return environment.name
    names = ", ".join(environment.title for environment in environments)
    findings.add(("baseline",), "matches no environment", f"the environments are: {names}")
    return first


def _named_baseline(name: str, environments: tuple[Environment, ...], findings: Findings) -> str | None:
    names = tuple(environment.name for environment in environments)
    if slug(name) in names:
        return slug(name)
    remedy = suggest(slug(name), names, noun="the environments")
    findings.add(("baseline",), f"{mask_conninfo(name)!r} matches no environment", remedy)
    return None


def _level_text(key: str, value: object) -> str:
    text = render_scalar(value) if isinstance(value, str | int | float) else str(value)
    if key == "client":
        return _client_text(value)
    if key != "server":
        return mask_conninfo(text)
    # The level is compared as it was normalised: a bare folder is a prefix, a connection string has no password.
    try:
        return parse_server(text).text
    except WrongValueError:
        return mask_conninfo(text)


def _client_text(value: object) -> str:
    try:
        return parse_clients(value).text
    except WrongValueError:
        return str(value)


def _known_baseline(wanted: Mapping[str, str], environments: tuple[Environment, ...], findings: Findings) -> bool:
    """Whether each key is a factor and each value one of its levels; notes what is not."""
    levels: dict[str, dict[str, None]] = {}
    for environment in environments:
        for level in environment.levels:
            levels.setdefault(level.factor, {})[level.value] = None
    good = True
    for key, value in wanted.items():
        path: Path = ("baseline", *key.split(".", 1))
        if key not in levels:
            remedy = suggest(key, levels, noun="the factors") if levels else "take it out: nothing varies"
            findings.add(path, "is not a factor of this experiment", remedy)
            good = False
        elif value not in levels[key]:
            remedy = suggest(value, levels[key], noun="the levels")
            findings.add(path, f"the baseline {value!r} matches no environment", remedy)
            good = False
    return good


def _check_number(
    environments: tuple[Environment, ...], factors: tuple[Factor, ...], file: ExperimentFile, findings: Findings
) -> None:
    """Something must be compared with something."""
    if any(findings.touches((table,)) for table in ("factors", "environments", "controls")):
        return
    if len(environments) > 1 or file.controls:
        return
    if file.environments:
        path: Path = ("environments",)
    elif factors:
        path = (*factors[0].path,)
    else:
        path = ("factors",)
    remedy = 'add a factor with two levels, such as [factors] server = ["16", "18"], or controls = ["same"]'
    findings.add(path, "there is only one environment, so nothing is compared", remedy)


def _check_suppliers(
    environments: tuple[Environment, ...],
    allow: AllowTable,
    listed: bool,
    findings: Findings,
) -> None:
    kinds = dict.fromkeys(environment.server.kind for environment in environments)
    if len(kinds) < 2 or allow.mixed_suppliers:  # noqa: PLR2004 - mixing takes two
        return
    path: Path = ("environments",) if listed else ("factors", "server")
    what = f"servers of different suppliers are compared ({', '.join(kinds)}): how they were built differs too"
    remedy = "take all from one supplier, or write [allow] mixed_suppliers = true"
    findings.add(path, what, remedy)


def _check_builds(environments: tuple[Environment, ...], listed: bool, findings: Findings) -> None:
    """Compiler and flags can only be chosen for what is compiled here."""
    if any(findings.touches((table, key)) for table in ("factors", "common") for key in ("server", "build")):
        return
    ready = [one.server for one in environments if one.server.build and one.server.kind is not ServerKind.BUILD]
    if not ready:
        return
    key = f"build.{ready[0].build[0][0]}"
    what = f"{key} is given for {replace(ready[0], build=()).text}, which is already built"
    path: Path = ("environments",) if listed else ("factors", "server")
    findings.add(path, what, 'give it to servers that are built here: server = "build:DIR"')


def _check_running(
    environments: tuple[Environment, ...], factors: tuple[Factor, ...], file: ExperimentFile, findings: Findings
) -> None:
    """A running server is never reconfigured."""
    running = [environment.server.kind is ServerKind.DSN for environment in environments]
    if not any(running):
        return
    what = "would have to be changed on a running server (dsn:), and pgstrata never reconfigures one"
    remedy = "take it out; or let pgstrata start the servers itself: embedded, 14 to 18, maven:MAJOR or prefix:DIR"
    refused = factor_keys().keys() - _OF_ANY_SERVER
    paths = [factor.path for factor in factors if factor.key.partition(".")[0] in refused]
    paths += [("common", key) for key in file.common if key in refused and file.common[key] != {}]
    for index, table in enumerate(file.environments):
        own = (key for key in table if key in refused - {"connection"} and table[key] != {})
        paths += [("environments", index, key) for key in own if running[index]]
    for path in paths:
        findings.add(path, what, remedy)


def _with_controls(
    environments: tuple[Environment, ...], baseline: str, controls: tuple[ControlKind, ...]
) -> tuple[Environment, ...]:
    wanted = [kind for kind in _CONTROL_NAMES if kind in controls]
    if not wanted or not environments:
        return environments
    original = next(environment for environment in environments if environment.name == baseline)
    taken = [environment.name for environment in environments]
    names = unique([*taken, *(f"{baseline}-{_CONTROL_NAMES[kind]}" for kind in wanted)])[len(taken) :]
    repeated = (replace(original, name=name, control=kind) for name, kind in zip(names, wanted, strict=True))
    return (*environments, *repeated)
