"""Levels of storage that have nothing to work on, or that exclude each other: refused in the file already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import Path
from pgstrata.experiment.remote import place_of
from pgstrata.experiment.schema import ExperimentFile
from pgstrata.model.experiment import Environment
from pgstrata.model.storage import Medium, Role, device_of, medium_of

_OF_THE_DATA: Final = ("storage.size", "storage.device")
_OF_ANY: Final = ("storage.mkfs", "storage.mount")
_FILE_SYSTEM: Final = 'add filesystem = "ext4", "xfs" or "btrfs"'


def check_storage(environments: tuple[Environment, ...], file: ExperimentFile, findings: Findings) -> None:
    """Note what `meaningless` finds, once for each place in the file."""
    found = [list(meaningless(environment)) for environment in environments]
    told: set[Path] = set()
    for index, problems in enumerate(found):
        for key, what, remedy in problems:
            place = place_of(key, index, file)
            if place in told:
                continue
            told.add(place)
            if not all(any(key == other for other, _, _ in each) for each in found):
                what += f", and {environments[index].title} has none"  # noqa: PLW2901
                remedy += f"; or list the [[environments]], and give {key} only to those that have one"  # noqa: PLW2901
            findings.add(place, what, remedy)


def meaningless(environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Key, what is wrong with it, and what to do."""
    layers = environment.layers
    media = {role: medium_of(environment, role) for role in Role}
    lost = [key for key in _OF_THE_DATA if key in layers] if media[Role.DATA] is Medium.SAME else []
    if not {Medium.LOOP, Medium.DEVICE} & set(media.values()):
        lost += [key for key in _OF_ANY if key in layers]
    for key in lost:
        yield key, f"{key} means nothing without a file system", _FILE_SYSTEM
    if "storage.size" in layers and "storage.device" in layers:
        what = "storage.size is that of an image file, a device has its own"
        yield "storage.size", what, "take storage.size or storage.device out"
    devices = {role: device_of(environment, role) for role in Role if media[role] is Medium.DEVICE}
    for role, device in devices.items():
        if device and list(devices.values()).count(device) > 1:
            what = f"{device} is asked for twice, and holds one file system"
            key = "storage.device" if role is Role.DATA else f"storage.{role}"
            yield key, what, "name another device for one of them"
