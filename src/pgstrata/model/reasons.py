"""Reasons as codes and figures, kept with runs and plans; `report.sentences.reasons` makes sentences of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DATA_EXCEED: Final = "data_exceed"
"""Note of a plan: from a scale on the data of a workload are larger than some memory."""
RISING_LOAD: Final = "rising_load"
"""Note of a plan: in every visit fewer clients come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a run failed or is not simply valid, or a cell has its design; a doubt of a noise floor, or a note of a plan.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Reason):
    """Something that is told while a plan is carried out, and kept nowhere."""
