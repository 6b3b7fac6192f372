"""Reads the descriptions, workload.toml in each workload's folder and data.toml in that of each kind of data."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, Final

from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import Script
from pgstrata.model.workload import DataKind, Option, Workload, WorkloadScript
from pgstrata.workloads.repeats import unroll

_DESCRIPTION: Final = "workload.toml"
_DATA: Final = "data.toml"


def builtin_workloads() -> Mapping[str, Workload]:
    """The workloads that come with pgstrata, by name; the name is that of the folder."""
    kinds = {kind.name: kind for kind in map(_load_data, _folders("data", _DATA))}
    found = (_load_workload(folder, kinds) for folder in _folders("", _DESCRIPTION))
    return MappingProxyType({workload.name: workload for workload in found})


def _folders(below: str, description: str) -> Iterable[Traversable]:
    """Folders with such a description, by name."""
    root = files(__package__) / below if below else files(__package__)
    found = (folder for folder in root.iterdir() if folder.is_dir() and (folder / description).is_file())
    return sorted(found, key=lambda folder: folder.name)


def _load_data(folder: Traversable) -> DataKind:
    described = tomllib.loads((folder / _DATA).read_text("utf-8"))
    steps = tuple(tuple(_read(folder, name) for name in step) for step in described.pop("steps", ()))
    described |= {name: _read(folder, described[name]) for name in ("checks", "consistency") if name in described}
    described |= {name: tuple(described.get(name, ())) for name in ("relations", "sources")}
    return DataKind(name=folder.name, steps=steps, **described)


def _load_workload(folder: Traversable, kinds: Mapping[str, DataKind]) -> Workload:
    described = tomllib.loads((folder / _DESCRIPTION).read_text("utf-8"))
    usual = {"driver": described.get("driver", DEFAULT_DRIVER)}
    described |= {
        "data": kinds[described["data"]],
        "options": MappingProxyType({name: _option(each) for name, each in described.get("options", {}).items()}),
        "settings": MappingProxyType(described.get("settings", {})),
        "scripts": tuple(_load_script(folder, {**usual, **each}) for each in described.get("scripts", ())),
    }
    return Workload(name=folder.name, **described)


def _option(described: Mapping[str, Any]) -> Option:
    choices = {name: MappingProxyType(texts) for name, texts in described.get("choices", {}).items()}
    return Option(**{**described, "choices": MappingProxyType(choices)})


def _load_script(folder: Traversable, described: Mapping[str, Any]) -> WorkloadScript:
    """Several files are one script, called like the last of them."""
    names = [described["file"]] if isinstance(described["file"], str) else described["file"]
    text = "".join(_read(folder, name) for name in names)
    return WorkloadScript(
        script=Script(file=f"{folder.name}/{names[-1]}", text=text, weight=described.get("weight", 1)),
        when=MappingProxyType(described.get("when", {})),
        only_with=tuple(described.get("only_with", ())),
        driver=described["driver"],
    )


def _read(folder: Traversable, name: str) -> str:
    return unroll((folder / name).read_text("utf-8"))
