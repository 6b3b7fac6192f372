"""Parts of a transaction's time as charts show them: few enough, named, coloured, in one unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.model.attribution import Attribution, Contribution, Part
from pgstrata.report.figures.vega import OPEN
from pgstrata.report.sentences.contributions import PART_NAMES, choose_decimals, choose_unit, half_of

MOST_PARTS: Final = 9
PALE: Final = 0.35
_LONGEST: Final = 36
# An interval that wide leaves no meaning to a tenth.
_WIDE: Final = 20.0
# Okabe and Ito, as everywhere; waits by their class, so that an event has its colour in every chart.
_COLOURS: Final = {
    Part.CLIENT: "#56b4e9",
    Part.CPU: "#009e73",
    Part.RUNNING: "#009e73",
    Part.QUEUE: "#e69f00",
    Part.REST: OPEN,
    Part.CONNECT: "#999933",
}
_WAITS: Final = {"IO": "#0072b2", "LWLock": "#d55e00", "Lock": "#cc79a7", "IPC": "#a6761d", "Timeout": "#f0e442"}
_OTHER_WAIT: Final = "#8c6bb1"
# Of one class several events: shades of its colour.
_SHADES: Final = (1.0, 0.72, 0.5, 0.34)
_ORDER: Final = (Part.CPU, Part.RUNNING, Part.QUEUE, Part.WAIT, Part.CONNECT, Part.CLIENT, Part.REST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """One part of a level's time per transaction, in seconds."""

    part: Part
    event: str
    seconds: float

    @property
    def name(self) -> str:
        """As in the legend."""
        return _name(self.part, self.event)


def name_part(contribution: Contribution) -> str:
    """Client and network; IO/WalSync. Names of events come from the server: cut, without control characters."""
    return _name(contribution.part, contribution.event)


def _name(part: Part | None, event: str) -> str:
    if part is None:
        return "all"
    return cut_name(event) or PART_NAMES[part]


def cut_name(text: str, longest: int = _LONGEST) -> str:
    """At most so many characters, none of which does anything but be read."""
    clean = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def colour_of(contribution: Contribution) -> str:
    """By what the time was spent on."""
    return _colour(contribution.part, contribution.event)


def _colour(part: Part | None, event: str) -> str:
    if part is None:
        return OPEN
    return _COLOURS.get(part) or _WAITS.get(event.partition("/")[0], _OTHER_WAIT)


def say_difference(contribution: Contribution) -> str:
    """+9.1 µs [+8.0, +10.2]; unresolved ones say so."""
    size, unit = choose_unit(contribution.difference)
    half = half_of(contribution.interval) / size
    digits = max(choose_decimals(half), 1 if half < _WIDE else 0)
    ends = [contribution.difference / size]
    if contribution.interval is not None:
        ends += [contribution.interval.low / size, contribution.interval.high / size]
    value, *interval = (f"{end:+.{digits}f}" if end else "0" for end in ends)
    text = f"{value} {unit} [{', '.join(interval)}]" if interval else f"{value} {unit}"
    return text if contribution.resolved else f"{text} unresolved"


def fold_parts(attribution: Attribution, most: int = MOST_PARTS) -> tuple[Contribution, ...]:
    """The parts from the largest difference to the smallest, the unexplained rest last.

    Of many the smallest waits become one, without an interval of its own; they still add up to the total.
    """
    parts = [part for part in attribution.parts if part.part is not Part.REST]
    rest = [part for part in attribution.parts if part.part is Part.REST]
    ranked = sorted(parts, key=lambda part: abs(part.difference), reverse=True)
    waits = [part for part in ranked if part.part is Part.WAIT]
    surplus = len(parts) - most
    folded = waits[-(surplus + 1) :] if surplus > 0 else []
    if len(folded) > 1:
        kept = [part for part in ranked if part not in folded]
        return (*kept, _sum(folded), *rest)
    return (*ranked, *rest)


def _sum(parts: Sequence[Contribution]) -> Contribution:
    return Contribution(
        part=Part.WAIT,
        event="",
        query="",
        value=sum(part.value for part in parts),
        reference=sum(part.reference for part in parts),
        difference=sum(part.difference for part in parts),
        samples=sum(part.samples for part in parts),
        interval=None,
        resolved=False,
    )


# ------------------------------------------------------------------------------------------------ levels


def stack_levels(levels: Sequence[Mapping[tuple[Part, str], float]], most: int = MOST_PARTS) -> list[tuple[Slab, ...]]:
    """The parts of several levels, the same ones in the same order in each; small waits become one."""
    sizes: dict[tuple[Part, str], float] = {}
    for level in levels:
        for key, seconds in level.items():
            sizes[key] = max(sizes.get(key, 0.0), abs(seconds))
    waits = sorted((key for key in sizes if key[0] is Part.WAIT and key[1]), key=lambda key: -sizes[key])
    kept = set(waits[: max(1, most - len(sizes) + len(waits))])
    found = []
    for level in levels:
        folded: dict[tuple[Part, str], float] = {}
        for (part, event), seconds in level.items():
            key = (part, event if (part, event) in kept else "") if part is Part.WAIT else (part, "")
            folded[key] = folded.get(key, 0.0) + seconds
        found.append(folded)
    keys = sorted(
        {key for level in found for key in level},
        key=lambda key: (_ORDER.index(key[0]), key[1] == "", -sizes.get(key, 0.0), key[1]),
    )
    return [
        tuple(Slab(part=part, event=event, seconds=level.get((part, event), 0.0)) for part, event in keys)
        for level in found
    ]


def legend_of(slabs: Iterable[Slab]) -> dict[str, str]:
    """Colour by name, in the order of the slabs; several events of one class are shades of its colour."""
    found: dict[str, str] = {}
    used: dict[str, int] = {}
    for slab in slabs:
        if slab.name not in found:
            colour = _colour(slab.part, slab.event)
            found[slab.name] = _shade(colour, _SHADES[used.get(colour, 0) % len(_SHADES)])
            used[colour] = used.get(colour, 0) + 1
    return found


def _shade(colour: str, strength: float) -> str:
    """Towards a light grey, which stands out from white and from black."""
    channels = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(200 + (channel - 200) * strength):02x}" for channel in channels)
