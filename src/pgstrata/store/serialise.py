"""Plans and run headers as JSON and back, without loss except for secrets, which are never written.

The converter follows the type hints of the model, so that a new field needs no work here.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from pgstrata.errors import StudyError
from pgstrata.model.plan import Plan
from pgstrata.model.secret import Secret
from pgstrata.model.server import Fingerprint
from pgstrata.ports.store import RunHeader
from pgstrata.ports.studies import StudyHead

FORMAT = 2
_GONE: Mapping[type, frozenset[str]] = {Plan: frozenset({"refresh"})}
"""Keys that former versions wrote and nothing reads any more."""
_Reader = Callable[[Any], Any]
_T = typing.TypeVar("_T")


def render_plan_file(file: StudyHead) -> bytes:
    """plan.json as bytes."""
    return _dump({"format": FORMAT, **encode(file)})


def parse_plan_file(content: bytes, *, where: str) -> StudyHead:
    """The plan of a study; StudyError if it is damaged or of another format."""
    try:
        data = json.loads(content)
        number = data.pop("format")
        if number == FORMAT:
            return typing.cast("StudyHead", _reader(StudyHead)(data))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StudyError(f"the plan of the study is damaged: {error}", where=where) from error
    raise StudyError(
        f"the study has format {number}, this pgstrata knows {FORMAT}",
        where=where,
        remedy="use the pgstrata that made it, or a newer one",
    )


def render_header(header: RunHeader) -> bytes:
    """run.json as bytes."""
    return _dump(encode(header), indent=1)


def parse_header(content: bytes) -> RunHeader:
    """The header of a run from its run.json; StudyError if it is damaged."""
    try:
        return typing.cast("RunHeader", _reader(RunHeader)(json.loads(content)))
    except (ValueError, TypeError, KeyError) as error:
        raise StudyError(f"the header of a run (run.json) is damaged: {error}") from error


def render_fingerprint(fingerprint: Fingerprint) -> bytes:
    """A fingerprint as a JSON file."""
    return _dump(dict(fingerprint.facts), indent=1)


def parse_fingerprint(content: bytes, *, where: str) -> Fingerprint:
    """A fingerprint from its JSON file; StudyError if it is damaged."""
    try:
        return Fingerprint(facts=_reader(Mapping[str, str])(json.loads(content)))
    except (ValueError, TypeError) as error:
        raise StudyError(f"a fingerprint is damaged: {error}", where=where) from error


def _dump(value: object, *, indent: int | None = None) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode()


def encode(value: Any) -> Any:
    """A value of the model as JSON knows it; a secret becomes null."""
    if value is None or isinstance(value, Secret):
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no form in a study's files")


def decode(kind: type[_T], value: Any) -> _T:
    """What `encode` was given, by its type; ValueError, TypeError or KeyError where the value is none of it."""
    return typing.cast("_T", _reader(typing.cast("Any", kind))(value))


@cache
def _reader(hint: Any) -> _Reader:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return _optional_reader(_reader(inner))
    if origin is tuple:
        return _tuple_reader(_reader(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(arguments[1]))
    if hint is Secret:
        return _refuse_secret
    if is_dataclass(hint) and isinstance(hint, type):
        return _dataclass_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return _plain_reader(hint)


def _optional_reader(inner: _Reader) -> _Reader:
    return lambda value: None if value is None else inner(value)


def _tuple_reader(inner: _Reader) -> _Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError(f"expected a list, found {value!r:.60}")
        return tuple([inner(item) for item in value])

    return read


def _mapping_reader(inner: _Reader) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise TypeError(f"expected an object, found {value!r:.60}")
        return {key: inner(item) for key, item in value.items()}

    return read


def _refuse_secret(_value: Any) -> Secret:
    raise TypeError("a file of a study holds a secret, which pgstrata never writes")


def _plain_reader(kind: type) -> _Reader:
    # A float of a whole number may have been given as an int; both stay what they were.
    accepted: Any = (int, float) if kind is float else kind

    def read(value: Any) -> Any:
        if not isinstance(value, accepted) or (kind is not bool and isinstance(value, bool)):
            raise TypeError(f"expected {kind.__name__}, found {value!r:.60}")
        return value

    return read


def _dataclass_reader(kind: type) -> _Reader:
    hints = typing.get_type_hints(kind)
    members = {member.name: (_reader(hints[member.name]), _is_required(member)) for member in fields(kind)}
    count = len(members)
    gone = _GONE.get(kind, frozenset())

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"expected an object for {kind.__name__}, found {value!r:.60}")
        if gone:
            value = {name: item for name, item in value.items() if name not in gone}
        arguments = {name: inner(value[name]) for name, (inner, required) in members.items()
                     if required or name in value}  # fmt: skip
        if len(value) > len(arguments) or len(arguments) > count:
            raise TypeError(f"{kind.__name__} has unknown keys: {', '.join(sorted(set(value) - set(members)))}")
        return kind(**arguments)

    return read


def _is_required(member: Field[Any]) -> bool:
    return member.default is MISSING and member.default_factory is MISSING
