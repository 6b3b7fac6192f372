"""The experiment file that `pgstrata try` writes from a few words.

What belongs here: assignments to TOML text, and the choice of run length where only a budget is given. The text is then
parsed like any other file, so nothing is checked here that `parse` checks.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.experiment.keys import SETTING_NAME, nearest
from pgstrata.experiment.registry import factor_keys
from pgstrata.experiment.servers import mask_conninfo, mask_level
from pgstrata.model.secret import Secret
from pgstrata.units import parse_duration, render_duration

_OPTIONS: Final = ("workload", "scale", "clients", "run", "budget", "blocks", "threshold", "seed", "controls")
_DEFAULT_BUDGET: Final = "10m"
_GOOD_BLOCKS: Final = 12
_LEAST_BLOCKS: Final = 7
_SHORT_RUN: Final = 5
_GOOD_RUN: Final = 10
_LONG_RUN: Final = 60
_SECONDS_AROUND: Final = 4.0
_SECONDS_PER_DATASET: Final = 15.0
_WARMUP_SHARE: Final = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a user says besides the factors, as on the command line; None or nothing where nothing was said.

    By default the workload is simple-update, the scale 10, or as many as there are clients, clients one per CPU, at
    least 4. `run` is the length of a run, such as 10s, `budget` the time to spend; `blocks` are at most so many.
    """

    workloads: tuple[str, ...] = ()
    scale: int | None = None
    clients: int | None = None
    run: str | None = None
    blocks: int | None = None
    threshold: str | None = None
    budget: str | None = None
    seed: int | None = None
    controls: tuple[str, ...] = ()
    question: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """An experiment file, without passwords; `conninfo` restores them by their masked form; `remarks` for people."""

    text: str
    conninfo: Mapping[str, Secret]
    remarks: tuple[str, ...]


def compose_try(
    assignments: Sequence[str], wishes: Wishes = Wishes(), *, cpus: int = 1, resolve_path: Callable[[str], str] = str
) -> Composed:
    r"""The experiment file for assignments such as server=16,18 or shared_buffers=1GB,4GB.

    A comma inside of a level is written `\,`; a key may be given more than once. Without a length of runs it follows
    from the budget (10 minutes if none is given): see `fitting_run`.

    Args:
        assignments: KEY=LEVEL,LEVEL... each; a key that is no factor is a PostgreSQL setting.
        wishes: everything else; the question is made from the assignments if there is none.
        cpus: CPUs of this machine.
        resolve_path: makes the path of an installation absolute.

    Raises:
        UsageError: an assignment cannot be read, or its key is misspelt.
    """
    factors = _collect(assignments)
    if not wishes.controls and all(len(levels) == 1 for levels in factors.values()):
        remedy = "write two levels, such as server=16,18; or compare it with itself: --control"
        verb = "has" if len(factors) == 1 else "have"
        raise UsageError(f"nothing varies: {' and '.join(factors)} {verb} only one level", remedy=remedy)
    secrets: dict[str, Secret] = {}
    lines = [_factor_line(key, levels, resolve_path, secrets) for key, levels in factors.items()]
    names = wishes.workloads or ("simple-update",)
    clients = wishes.clients or max(4, cpus)
    run, remarks = wishes.run, list[str]()
    if run is None:
        run, remark = _choose_run(wishes.budget or _DEFAULT_BUDGET, factors, len(names), len(wishes.controls))
        remarks.append(remark)
    head = {
        "question": wishes.question or _question(factors),
        "threshold": wishes.threshold,
        "blocks": wishes.blocks,
        "budget": wishes.budget or (None if wishes.blocks else _DEFAULT_BUDGET),
        "controls": wishes.controls or None,
        "seed": wishes.seed,
    }
    text = [
        "# Written by pgstrata try. Change what you like, look at it with `pgstrata plan FILE`,",
        "# and carry it out with `pgstrata run FILE`; all keys: docs/reference/experiment.md in the source of pgstrata",
        *(f"{key} = {toml_value(value)}" for key, value in head.items() if value is not None),
        "",
        "# Each key is something that varies; its first level is the baseline.",
        "[factors]",
        *lines,
    ]
    for name in names:
        text += ["", "# What is measured in every environment.", "[[cells]]", f"workload = {toml_value(name)}"]
        text += [f"scale = {wishes.scale or max(10, clients)}", f"clients = {clients}", f"run = {toml_value(run)}"]
    return Composed(text="\n".join(text) + "\n", conninfo=secrets, remarks=tuple(remarks))


def fitting_run(budget: float, environments: int, cells: int, servers: int) -> int:
    """Seconds of one run so that a budget holds enough blocks.

    What is left after the datasets (15 s for each server, at most half of the budget) is divided by 12 blocks times
    environments times cells; from each share go 4 s for clone, start and stop, and a tenth for the warm-up. If that
    gives less than 10 s, 7 blocks are aimed at, the fewest that give an interval. Always from 5 s to 60 s.
    """
    left = budget - min(budget / 2, _SECONDS_PER_DATASET * servers)
    seconds = 0.0
    for blocks in (_GOOD_BLOCKS, _LEAST_BLOCKS):
        seconds = (left / (blocks * environments * cells) - _SECONDS_AROUND) / _WARMUP_SHARE
        if seconds >= _GOOD_RUN:
            return min(_LONG_RUN, int(seconds))
    return min(_GOOD_RUN, max(_SHORT_RUN, int(seconds)))


def _choose_run(budget: str, factors: Mapping[str, Sequence[str]], cells: int, controls: int) -> tuple[str, str]:
    try:
        seconds = parse_duration(budget)
    except ValueError:
        raise UsageError(f"{budget!r} is not a duration", where="budget", remedy="write 90s, 10m or 1h30m") from None
    environments = controls + math.prod(len(levels) for levels in factors.values())
    run = fitting_run(seconds, environments, cells, len(factors.get("server", ("embedded",))))
    remark = f"runs of {run} s, so that {render_duration(seconds)} hold enough blocks; --run changes it"
    return f"{run}s", remark


def _collect(assignments: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Levels by the key of their factor."""
    if not assignments:
        raise UsageError("nothing varies", remedy="name a factor and its levels: server=16,18")
    levels: dict[str, list[str]] = {}
    for assignment in assignments:
        key, equals, rest = assignment.partition("=")
        if not equals or not key.strip():
            remedy = "write KEY=LEVEL,LEVEL: server=16,18 or shared_buffers=1GB,4GB"
            raise UsageError(f"{mask_conninfo(assignment)!r} is not an assignment", remedy=remedy)
        parts = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", rest)]
        name = _key(key.strip())
        if any(not part for part in parts):
            raise UsageError(f"{key.strip()} has an empty level", remedy=f"write {key.strip()}=LEVEL,LEVEL")
        levels.setdefault(name, []).extend(parts)
    return levels


def _key(key: str) -> str:
    """The key of a factor; whatever else looks like a setting is one."""
    factors = factor_keys()
    head, dot, rest = key.partition(".")
    if key in factors or (dot and rest and head in factors):
        return key
    if key in _OPTIONS:
        raise UsageError(f"{key} is not a factor of `try`", remedy=f"write it as an option: --{key} VALUE")
    near = nearest(head, factors)
    # Settings often contain the name of a factor (log_connections); a slip of the hand has about the same length.
    if near and abs(len(near) - len(head)) <= 1 and (not dot or near in {"settings", "initdb", "options"}):
        raise UsageError(
            f"{key!r} is not a factor", remedy=f"did you mean {near}{dot}{rest}? A setting: settings.{key}"
        )
    if SETTING_NAME.fullmatch(key.lower()):
        return f"settings.{key.lower()}"
    remedy = f"factors are {', '.join(factors)}; anything else is the name of a PostgreSQL setting"
    raise UsageError(f"{key!r} is neither a factor nor the name of a setting", remedy=remedy)


def _factor_line(
    key: str, levels: Sequence[object], resolve_path: Callable[[str], str], secrets: dict[str, Secret]
) -> str:
    if key == "server":
        levels = [_server(str(level), resolve_path, secrets) for level in levels]
    elif key == "checksums":
        levels = [{"true": True, "on": True, "false": False, "off": False}.get(str(one), one) for one in levels]
    return f"{key if '.' not in key else toml_value(key)} = {toml_value(levels)}"


def _server(level: str, resolve_path: Callable[[str], str], secrets: dict[str, Secret]) -> str:
    """The level as it is written into the file: absolute paths, no passwords."""
    level, hidden = mask_level(level)
    secrets.update(hidden)
    if level.startswith("prefix:"):
        return f"prefix:{resolve_path(level.removeprefix('prefix:'))}"
    if level.startswith((".", "~", "/")) or ("/" in level and ":" not in level):
        return f"prefix:{resolve_path(level)}"
    return level


def _question(factors: Mapping[str, Sequence[str]]) -> str:
    parts = (
        f"{key.removeprefix('settings.')} ({', '.join(map(mask_conninfo, levels))})" for key, levels in factors.items()
    )
    return f"What changes with {' and '.join(parts)}?"


def toml_value(value: object) -> str:
    """A TOML value; JSON's strings, numbers, booleans and lists are TOML as well."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
