"""Values of the model as JSON and back, without loss except for secrets, which are never written.

The converter follows the type hints of the model, so that a new field needs no work here.
"""

import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from pgstrata.model.floor import Floor
from pgstrata.model.plan import Plan
from pgstrata.model.reasons import Reason
from pgstrata.model.secret import Secret

_GONE: Mapping[type, frozenset[str]] = {Plan: frozenset({"refresh"}), Floor: frozenset({"slices", "runs"})}
"""Keys that former versions wrote and nothing reads any more."""
_MOST_VALUES = 2_000_000
_Reader = Callable[[Any], Any]
_T = typing.TypeVar("_T")


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    return ((field.name, getattr(value, field.name)) for field in fields(value))


def encode(value: Any, members: Callable[[Any], Iterable[tuple[str, Any]]] = _members) -> Any:
    """A value of the model as JSON knows it; a secret becomes null. `members` are the fields of a dataclass."""
    if value is None or isinstance(value, Secret):
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return [encode(item, members) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item, members) for key, item in value.items()}
    if is_dataclass(value):
        return {name: encode(item, members) for name, item in members(value)}
    raise TypeError(f"{type(value).__name__} has no form in a study's files")


def decode(kind: type[_T], value: Any) -> _T:
    """What `encode` was given, by its type; ValueError, TypeError or KeyError where the value is none of it."""
    return typing.cast("_T", _reader(typing.cast("Any", kind))(value))


def parse_json(content: bytes) -> Any:
    """What a JSON text says; ValueError where it is none, is nested too deeply or holds over two million values."""
    if sum(map(content.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES:,} values")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


@cache
def _reader(hint: Any) -> _Reader:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        (inner,) = (_reader(argument) for argument in arguments if argument is not types.NoneType)
        # former versions kept an empty sentence where there was no reason
        nothing: tuple[Any, ...] = (None, "") if Reason in arguments else (None,)
        return lambda value: None if value in nothing else inner(value)
    if origin is tuple:
        item = _reader(arguments[0])
        return lambda value: tuple([item(one) for one in _expect(list, value)])
    if origin is not None and issubclass(origin, Mapping):
        item = _reader(arguments[1])
        return lambda value: {key: item(one) for key, one in _expect(dict, value).items()}
    if hint is Secret:
        return _refuse_secret
    if is_dataclass(hint) and isinstance(hint, type):
        return _dataclass_reader(hint)
    if issubclass(hint, Enum):
        return typing.cast("_Reader", hint)
    # A float of a whole number may have been given as an int; both stay what they were.
    return lambda value: _expect((int, float) if hint is float else hint, value)


def _expect(kind: Any, value: Any) -> Any:
    """The value; TypeError where it is none of that type, or a boolean that is to be a number."""
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise TypeError(f"expected {getattr(kind, '__name__', 'a number')}, found {value!r:.60}")
    return value


def _refuse_secret(_value: Any) -> Secret:
    raise TypeError("a file of a study holds a secret, which pgstrata never writes")


def _dataclass_reader(kind: type) -> _Reader:
    hints = typing.get_type_hints(kind)
    members = {
        member.name: (_reader(hints[member.name]), member.default is MISSING and member.default_factory is MISSING)
        for member in fields(kind)
    }
    gone = _GONE.get(kind, frozenset())

    def read(value: Any) -> Any:
        # former versions kept a sentence
        plain = kind is Reason and isinstance(value, str)
        given = {"code": "", "text": value} if plain else _expect(dict, value)
        if gone:
            given = {name: item for name, item in given.items() if name not in gone}
        arguments = {
            name: inner(given[name]) for name, (inner, required) in members.items() if required or name in given
        }
        if len(given) > len(arguments):
            raise TypeError(f"{kind.__name__} has unknown keys: {', '.join(sorted(set(given) - set(members)))}")
        return kind(**arguments)

    return read
