"""Reasons as codes and figures, kept with runs and plans; `report.sentences.reasons` makes sentences of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a run is not simply valid, a cell has its design, or something was chosen for a plan.

    What each code of a run is against stands in `model.guards`. `how` is one of several cases of a code; `names` are
    facts, settings, views, samplers; `said` is what an error or another program said. `value` is a number, of bytes,
    CPUs, transactions, blocks or looks a second, or a share; `of` is what it is compared with. `text` is the sentence
    of a former version, which kept no figures.
    """

    code: str
    how: str = ""
    names: tuple[str, ...] = ()
    said: str = ""
    value: float = 0.0
    of: float = 0.0
    seconds: float = 0.0
    text: str = ""
