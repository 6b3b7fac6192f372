"""Which parts of a server lie on storage of their own, and on what."""

from enum import StrEnum
from typing import Final

from pgstrata.model.experiment import Environment


class Role(StrEnum):
    """A part of a server that can have a file system of its own."""

    DATA = "data"
    WAL = "wal"
    INSTALLATION = "installation"


class Medium(StrEnum):
    """What a part lies on: the usual place, an image on a loop device, memory, or a block device of the user's."""

    SAME = "same"
    LOOP = "loop"
    MEMORY = "memory"
    DEVICE = "device"


WORDS: Final = (Medium.SAME, Medium.LOOP, Medium.MEMORY)
"""Levels of `storage.wal` and `storage.installation` that are no path of a device."""


def device_of(environment: Environment, role: Role) -> str:
    """The block device that a part is to lie on, as it was written; empty where none was asked for."""
    if role is Role.DATA:
        return environment.layers.get("storage.device", "")
    level = environment.layers.get(f"storage.{role}", "")
    return level if level.startswith("/") else ""


def medium_of(environment: Environment, role: Role) -> Medium:
    """What a part is to lie on; the data have a file system of their own where `filesystem` is given."""
    if role is Role.DATA and "filesystem" not in environment.layers:
        return Medium.SAME
    if device_of(environment, role):
        return Medium.DEVICE
    return Medium.LOOP if role is Role.DATA else Medium(environment.layers.get(f"storage.{role}", Medium.SAME))
