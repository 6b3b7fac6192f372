"""From the text of an experiment file to an `Experiment`, or to everything that is wrong with it, at once.

What belongs here: the file's structure and its JSON Schema (`schema`), its meaning (`parse`), settings that are chosen
where the author gave none (`defaults`), and the file that `pgstrata try` writes (`compose`). No I/O: whoever calls
hands in the text, the machine's size and a way to read the files that the text names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pgstrata.experiment.compose import Composed, compose_try
    from pgstrata.experiment.defaults import complete_experiment
    from pgstrata.experiment.parse import parse_experiment

__all__ = ["Composed", "complete_experiment", "compose_try", "parse_experiment"]

_HOMES: Final = {
    "Composed": "compose",
    "complete_experiment": "defaults",
    "compose_try": "compose",
    "parse_experiment": "parse",
}


def __getattr__(name: str) -> object:
    # pydantic takes a tenth of a second to load, which commands that read no experiment file need not pay.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
