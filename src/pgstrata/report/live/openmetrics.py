"""Metrics in the text formats that Prometheus reads: OpenMetrics 1.0, and the older format 0.0.4. Pure.

Specification: https://prometheus.io/docs/specs/om/open_metrics_spec/ and
https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class FamilyType(StrEnum):
    """What may be done with the values of a family: a counter only grows, and begins anew with the recorder."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of metrics, which differ in the value of one label.

    `name` is that of its samples; one of a counter ends in `_total`. `unit` is empty, or the end of the name without
    that. `label` is empty where the family has one metric, and `values` are all that the label can have.
    """

    name: str
    type: FamilyType
    help: str
    unit: str = ""
    label: str = ""
    values: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """What OpenMetrics calls the family: without the ending of counters."""
        return self.name.removesuffix(_TOTAL) if self.type is FamilyType.COUNTER else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a family's metrics are now, by the value of its label; of a family without a label, that of the key ""."""

    family: Family
    values: Mapping[str, float] = field(default_factory=dict)


class MetricsFormat(StrEnum):
    """The formats by the type of their content."""

    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    PLAIN = "text/plain; version=0.0.4; charset=utf-8"


_TOTAL: Final = "_total"
_TYPES: Final = {"application/openmetrics-text": MetricsFormat.OPENMETRICS, "text/plain": MetricsFormat.PLAIN}
_VERSIONS: Final = {MetricsFormat.OPENMETRICS: "1.0.0", MetricsFormat.PLAIN: "0.0.4"}
_LARGEST: Final = 2.0**53


def choose_format(accept: str) -> MetricsFormat:
    """The format that a client wants most by its header Accept; the older one if it does not name either.

    Source: RFC 9110, section 12.5.1. Of formats that are wanted equally, OpenMetrics is taken.
    """
    wanted = {MetricsFormat.OPENMETRICS: 0.0, MetricsFormat.PLAIN: 0.0}
    for entry in accept.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        said = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        found = _TYPES.get(name.lower())
        if found is None or said.get("version", _VERSIONS[found]) != _VERSIONS[found]:
            continue
        wanted[found] = max(wanted[found], _quality(said.get("q", "1")))
    best = max(wanted.values())
    return MetricsFormat.PLAIN if best == 0 else max(wanted, key=lambda each: wanted[each])


def _quality(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if 0 <= found <= 1 else 0.0


def render_metrics(found: Iterable[Measured], form: MetricsFormat) -> str:
    """All families that have a value, in their order."""
    ending = "# EOF\n" if form is MetricsFormat.OPENMETRICS else ""
    return "".join(f"{line}\n" for each in found if each.values for line in _lines(each, form)) + ending


def _lines(measured: Measured, form: MetricsFormat) -> Iterator[str]:
    family = measured.family
    strict = form is MetricsFormat.OPENMETRICS
    name = family.base if strict else family.name
    yield f"# TYPE {name} {family.type.value}"
    if strict and family.unit:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {_escape(family.help, quotes=strict)}"
    for value, number in measured.values.items():
        label = f'{{{family.label}="{_escape(value, quotes=True)}"}}' if family.label else ""
        yield f"{family.name}{label} {render_number(number)}"


def _escape(text: str, *, quotes: bool) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def render_number(value: float) -> str:
    """As short as it can be without losing a digit: 3, 0.25, 1e-05, NaN, +Inf."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < _LARGEST else repr(float(value))
