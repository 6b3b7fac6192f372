"""Reads the descriptions, workload.toml in each workload's folder, as typed values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final

from pgstrata.model.experiment import Script
from pgstrata.model.workload import Workload

_DESCRIPTION: Final = "workload.toml"


def builtin_workloads() -> Mapping[str, Workload]:
    """The workloads that come with pgstrata, by name; the name is that of the folder."""
    folders = (
        folder for folder in files(__package__).iterdir() if folder.is_dir() and (folder / _DESCRIPTION).is_file()
    )
    found = (_load_description(folder) for folder in sorted(folders, key=lambda folder: folder.name))
    return MappingProxyType({workload.name: workload for workload in found})


def _load_description(folder: Traversable) -> Workload:
    described = tomllib.loads((folder / _DESCRIPTION).read_text("utf-8"))
    described |= {
        "relations": tuple(described["relations"]),
        "options": MappingProxyType(described.get("options", {})),
        "choices": MappingProxyType({name: tuple(each) for name, each in described.get("choices", {}).items()}),
        "script": _load_script(folder, described.get("script")),
    }
    return Workload(name=folder.name, **described)


def _load_script(folder: Traversable, described: Mapping[str, str] | None) -> Script | None:
    if described is None:
        return None
    name = described["file"]
    return Script(file=f"{folder.name}/{name}", text=(folder / name).read_text("utf-8"))
