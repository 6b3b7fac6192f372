"""What fixes a plan, as a short hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import Cell, Environment, Experiment, HostSpec, ServerSpec
from pgstrata.model.plan import Design

_NOT_FIXING: Final = {
    Experiment: frozenset({"question", "text", "notes", "budget", "interleave"}),
    ServerSpec: frozenset({"conninfo"}),
    Design: frozenset({"reason"}),
}
_ONLY_WHERE_GIVEN: Final[Mapping[type, Mapping[str, object]]] = {
    Cell: {"driver": DEFAULT_DRIVER},
    Environment: {"host": HostSpec()},
    Experiment: {"diagnosis": True, "profile_cpu": False, "query_text": True},
}
"""Fields that came later, with the value that they had before: plans without them keep their identity."""


def identify(experiment: Experiment, designs: Sequence[Design]) -> str:
    """What fixes the plan, as a short hash: not its wording, budget, notes, floors or anybody's password."""
    content = json.dumps([_plain(experiment), _plain(tuple(designs))], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _plain(value: object) -> Any:
    if is_dataclass(value):
        left_out = _NOT_FIXING.get(type(value), frozenset())
        usual = _ONLY_WHERE_GIVEN.get(type(value), {})
        given = ((field.name, getattr(value, field.name)) for field in fields(value) if field.name not in left_out)
        return {name: _plain(item) for name, item in given if name not in usual or item != usual[name]}
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
