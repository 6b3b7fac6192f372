"""What is declared of a layer of the host; parsing, schema, reference, doctor and design follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pgstrata.experiment.needs import HostLine
from pgstrata.experiment.values import SCALAR, Kind, Scalar


class Together(StrEnum):
    """Whether servers that are up together can have different levels of a key.

    NO: it belongs to the whole host. FOR_ONE: it is made for one server, and none can be up beside that. BY_PERIODS:
    the kernel gives it out by periods, so that a slice also gets what a pause has saved up.
    """

    DIFFERENT = "different"
    NO = "no"
    FOR_ONE = "for one"
    BY_PERIODS = "by periods"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKey:
    """A key of a layer, such as cpu.quota.

    `read` gives the normalised text of a written level or raises WrongValueError; `meaning` is its line in the
    reference, in Markdown.
    """

    read: Callable[[Scalar], str]
    meaning: str
    together: Together = Together.NO


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorKey:
    """A key of [common], [[environments]] and [factors]: one level, or with the kind TABLE a table of keys with levels.

    `levels` is its meaning in [factors] where that is another one. `wrong` and `wrong_levels` are values in [common]
    and [factors] with which the reference shows what is said to a mistake.
    """

    meaning: str
    wrong: str
    wrong_levels: str
    levels: str = ""
    kind: Kind[Any] = SCALAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer: its keys in the file and all their levels, such as cpu and cpu.quota; lines of `doctor`.

    A key that ends in .* stands for all names below it.
    """

    factors: Mapping[str, FactorKey]
    keys: Mapping[str, LayerKey]
    host: tuple[HostLine, ...] = ()
