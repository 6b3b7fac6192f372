"""What fixes a plan, as a short hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from pgstrata.model.codec import encode
from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import HERE, Cell, Environment, Experiment, HostSpec, Order, Placement, ServerSpec
from pgstrata.model.own_data import DataFile, OwnData
from pgstrata.model.plan import FORMER_HORIZON, HORIZON, Design

_NOT_FIXING: Final = {
    Experiment: frozenset({"question", "text", "notes", "budget", "interleave", "prices"}),
    Environment: frozenset({"label"}),
    ServerSpec: frozenset({"conninfo"}),
    OwnData: frozenset({"size", "folder"}),
    DataFile: frozenset({"name", "path", "bytes", "stamp"}),
    Design: frozenset({"reason", "free_because", "writes"}),
}
_ONLY_WHERE_GIVEN: Final[Mapping[type, Mapping[str, object]]] = {
    Cell: {
        "driver": DEFAULT_DRIVER,
        "placement": Placement.AUTO,
        "data": None,
        "checkout": (),
        "objective": None,
        "rate_share": None,
        "until_falls": False,
    },
    Design: {"placement": Placement.FREE, "stretched": None},
    Environment: {"host": HostSpec(), "placement": None, "client_hosts": HERE},
    Experiment: {
        "diagnosis": True,
        "profile_cpu": False,
        "query_text": True,
        "order": Order.RANDOM,
        "synthetic": None,
    },
    ServerSpec: {"restart": ()},
}
"""Fields that came later, with the value that they had before: plans without them keep their identity."""


def identify(experiment: Experiment, designs: Sequence[Design], horizon: int = HORIZON) -> str:
    """What fixes the plan, as a short hash: not its wording, budget, notes, floors or anybody's password.

    Nor the number of blocks, which only stops earlier than the horizon does; of former versions it was the horizon.
    """
    fixed = experiment if horizon == FORMER_HORIZON else replace(experiment, blocks=horizon)
    content = json.dumps(encode((fixed, tuple(designs)), _fixing), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _fixing(value: Any) -> Iterator[tuple[str, Any]]:
    left_out = _NOT_FIXING.get(type(value), frozenset())
    usual = _ONLY_WHERE_GIVEN.get(type(value), {})
    for name in (field.name for field in fields(value) if field.name not in left_out):
        item = getattr(value, name)
        if name not in usual or item != usual[name]:
            yield name, item
