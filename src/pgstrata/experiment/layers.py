"""Levels of host layers: which keys there are, and one written value to its normalised text.

What belongs here: spelling and ranges. Whether this host has what is asked for, the layer itself finds out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from pgstrata.experiment.keys import suggest
from pgstrata.experiment.values import Scalar
from pgstrata.model.storage import WORDS
from pgstrata.units import parse_bytes, parse_ratio

_CPU_LIST: Final = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")
# NR_CPUS of x86 at most (arch/x86/Kconfig); no other architecture has more.
_MOST_CPUS: Final = 8192
_POLICY: Final = re.compile(r"other|batch|idle|(fifo|rr):([1-9]\d?)")
_SYSCTL: Final = re.compile(r"[a-z0-9_]+([./][A-Za-z0-9_:@-]+)+")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_.+/-]*")
_DEVICE: Final = re.compile(r"/dev/[A-Za-z0-9_][A-Za-z0-9_.:+@/-]*")
_LEAST_MEMORY: Final = 16 * 1024**2
_LARGEST_POLICY: Final = "at most 99"


class LayerLevelError(ValueError):
    """A level that cannot be; `what` and `remedy` for people."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def read_level(key: str, value: Scalar) -> str:
    """The normalised text of a level of `key`, such as "pages" or "cpu.quota".

    Raises:
        LayerLevelError: there is no such key, or the value is none of it.
    """
    check_key(key)
    if key.startswith("sysctl."):
        return _sysctl(value)
    return LAYER_KEYS[key](value)


def check_key(key: str) -> None:
    """LayerLevelError where no layer has such a key; keys that are none of a layer pass."""
    table, _, name = key.partition(".")
    if table == "sysctl" and (not _SYSCTL.fullmatch(name) or ".." in name):
        raise LayerLevelError(f"{name!r} cannot be the name of a sysctl", "write it as sysctl -a does: vm.swappiness")
    if table in LAYER_TABLES and table != "sysctl" and key not in LAYER_KEYS:
        keys = sorted(known for known in LAYER_KEYS if known.startswith(f"{table}."))
        raise LayerLevelError(f"the layer {table!r} has no key {name!r}", suggest(key, keys, noun="one of"))


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value).strip()


def _choice(*choices: str) -> Callable[[Scalar], str]:
    def read(value: Scalar) -> str:
        text = _text(value).lower()
        if text not in choices:
            raise LayerLevelError(f"{_text(value)!r} cannot stand here", suggest(text, choices))
        return text

    return read


def _program(value: Scalar) -> str:
    text = _text(value)
    if not _PROGRAM.fullmatch(text):
        raise LayerLevelError(f"{text!r} is no compiler", 'write the name or path of one: "gcc-12", "clang"')
    return text


def _pages(value: Scalar) -> str:
    known = {"4kB": 4096, "2MB": 2 * 1024**2, "1GB": 1024**3}
    for name, size in known.items():
        if _bytes_or_none(value) == size:
            return name
    raise LayerLevelError(f"{_text(value)!r} is no size of memory pages", suggest(_text(value), known))


def _bytes_or_none(value: Scalar) -> int | None:
    try:
        return parse_bytes(_text(value))
    except ValueError:
        return None


def _cpus(value: Scalar) -> str:
    text = _text(value).replace(" ", "")
    if isinstance(value, bool | float) or not _CPU_LIST.fullmatch(text):
        raise LayerLevelError(f"{_text(value)!r} is no list of CPUs", 'write for example "0-3" or "0,2,4"')
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) >= _MOST_CPUS or int(first) >= _MOST_CPUS:
            raise LayerLevelError(f"{part} is no CPU of any Linux", f"CPUs have the numbers 0 to {_MOST_CPUS - 1}")
        if last and int(last) < int(first):
            raise LayerLevelError(f"the range {part} runs backwards", f'write "{last}-{first}"')
    return text


def _quota(value: Scalar) -> str:
    remedy = 'write CPUs or a share of one: 0.5 and "50 %" are half a CPU, 2 and "200 %" are two'
    try:
        cpus = parse_ratio(_text(value))
    except ValueError as error:
        raise LayerLevelError(f"{_text(value)!r} is no amount of CPU", remedy) from error
    if isinstance(value, bool) or not cpus >= 0.01:  # noqa: PLR2004 - the kernel takes no quota below 1 ms of 100 ms
        raise LayerLevelError(f"{_text(value)!r} is no amount of CPU", f"{remedy}; at least 0.01")
    return f"{cpus:g}"


def _policy(value: Scalar) -> str:
    text = _text(value).lower().replace(" ", "")
    if not _POLICY.fullmatch(text):
        remedy = f'write "other", "batch", "idle", "fifo:N" or "rr:N" with a priority N from 1, {_LARGEST_POLICY}'
        raise LayerLevelError(f"{_text(value)!r} is no scheduling policy", remedy)
    return text


def _bytes(least: int) -> Callable[[Scalar], str]:
    def read(value: Scalar) -> str:
        size = None if isinstance(value, bool) else _bytes_or_none(_text(value).removesuffix("/s"))
        if size is None:
            raise LayerLevelError(f"{_text(value)!r} is no size", 'write it with its unit, in quotes: "4GB", "100MB"')
        if size < least:
            raise LayerLevelError(f"{_text(value)!r} is too small", f"write at least {least // 1024} kB")
        return str(size)

    return read


def _operations(value: Scalar) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise LayerLevelError(f"{_text(value)!r} is no number of operations", "write a whole number per second: 500")
    return str(value)


def _word(value: Scalar) -> str:
    text = _text(value)
    if not _WORD.fullmatch(text):
        raise LayerLevelError(f"{text!r} is not one word", "write it as the kernel does")
    return text


def _device(value: Scalar) -> str:
    text = _text(value)
    if not _DEVICE.fullmatch(text) or "/." in text:
        raise LayerLevelError(f"{text!r} is no path of a device", 'write for example "/dev/nvme1n1"')
    return text


def _place(value: Scalar) -> str:
    text = _text(value)
    if text.startswith("/"):
        return _device(value)
    if text.lower() not in WORDS:
        remedy = (
            f'{suggest(text.lower(), WORDS)}; or the path of a device that may be overwritten, such as "/dev/nvme1n1"'
        )
        raise LayerLevelError(f"{text!r} is no storage of its own", remedy)
    return text.lower()


def _options(value: Scalar) -> str:
    if isinstance(value, bool) or not _text(value):
        raise LayerLevelError("options are one text", 'write for example "noatime" or "-m crc=0"')
    return _text(value)


def _sysctl(value: Scalar) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return " ".join(_text(value).split())


LAYER_KEYS: Final[Mapping[str, Callable[[Scalar], str]]] = {
    "pages": _pages,
    "thp": _choice("always", "madvise", "never"),
    "cpu.server": _cpus,
    "cpu.client": _cpus,
    "cpu.quota": _quota,
    "cpu.policy": _policy,
    "cpu.governor": _word,
    "cpu.turbo": _choice("on", "off"),
    "build.compiler": _program,
    "build.flags": _options,
    "build.system": _choice("meson", "configure"),
    "limits.memory": _bytes(_LEAST_MEMORY),
    "limits.read_bytes": _bytes(4096),
    "limits.write_bytes": _bytes(4096),
    "limits.read_operations": _operations,
    "limits.write_operations": _operations,
    "filesystem": _choice("ext4", "xfs", "btrfs"),
    "storage.mkfs": _options,
    "storage.mount": _options,
    "storage.size": _bytes(64 * 1024**2),
    "storage.device": _device,
    "storage.scheduler": _word,
    "storage.read_ahead": _bytes(0),
    "storage.wal": _place,
    "storage.installation": _place,
}
"""Every key of a host layer but those of `sysctl`, whose names are the kernel's."""

LAYER_TABLES: Final = ("build", "cpu", "limits", "storage", "sysctl")
PLAIN_LAYERS: Final = ("pages", "thp", "filesystem")
