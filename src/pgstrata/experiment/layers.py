"""The keys of host layers: how a level is written, what it means, and whether servers up together can differ in it.

What belongs here: spelling and ranges. Whether this host has what is asked for, the layer itself finds out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
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


class Together(StrEnum):
    """Whether servers that are up together can have different levels of a key.

    NO: it belongs to the whole host. FOR_ONE: it is made for one server, and none can be up beside that. BY_PERIODS:
    the kernel gives it out by periods, so that a slice also gets what a pause has saved up.
    """

    DIFFERENT = "different"
    NO = "no"
    FOR_ONE = "for one"
    BY_PERIODS = "by periods"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKey:
    """A key of a layer of the host: all that parsing, plan and reference have to know of it.

    `read` gives the normalised text of a written level or raises LayerLevelError; `meaning` is its line in the
    reference, in Markdown.
    """

    read: Callable[[Scalar], str]
    meaning: str
    together: Together = Together.NO


def read_level(key: str, value: Scalar) -> str:
    """The normalised text of a level of `key`, such as "pages" or "cpu.quota".

    Raises:
        LayerLevelError: there is no such key, or the value is none of it.
    """
    check_key(key)
    return find_layer_key(key).read(value)


def find_layer_key(key: str) -> LayerKey:
    """The declaration of a key that `check_key` lets pass."""
    return SYSCTL if key.startswith("sysctl.") else LAYER_KEYS[key]


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


LAYER_KEYS: Final[Mapping[str, LayerKey]] = {
    "pages": LayerKey(
        read=_pages,
        meaning='`"4kB"`, `"2MB"`, `"1GB"`: what the server\'s shared memory lies on',
    ),
    "thp": LayerKey(
        read=_choice("always", "madvise", "never"),
        meaning='`"always"`, `"madvise"`, `"never"`: transparent huge pages, for anonymous and shared memory',
    ),
    "build.compiler": LayerKey(
        read=_program,
        meaning="the C compiler, by name or path",
    ),
    "build.flags": LayerKey(
        read=_options,
        meaning="flags of the compiler, as one text",
    ),
    "build.system": LayerKey(
        read=_choice("meson", "configure"),
        meaning='`"meson"`, `"configure"`',
    ),
    "cpu.server": LayerKey(
        read=_cpus,
        meaning='a list such as `"0-3,8"`: the CPUs that the server may use',
        together=Together.DIFFERENT,
    ),
    "cpu.client": LayerKey(
        read=_cpus,
        meaning="the same for the client",
        together=Together.DIFFERENT,
    ),
    "cpu.quota": LayerKey(
        read=_quota,
        meaning='CPUs that the server may use up: `0.5` or `"50 %"` is half of one',
        together=Together.BY_PERIODS,
    ),
    "cpu.policy": LayerKey(
        read=_policy,
        meaning='`"other"`, `"batch"`, `"idle"`, `"fifo:N"`, `"rr:N"`: how the server is scheduled',
        together=Together.DIFFERENT,
    ),
    "cpu.governor": LayerKey(
        read=_word,
        meaning="a governor of cpufreq, as the kernel calls it",
    ),
    "cpu.turbo": LayerKey(
        read=_choice("on", "off"),
        meaning='`"on"`, `"off"`',
    ),
    "limits.memory": LayerKey(
        read=_bytes(_LEAST_MEMORY),
        meaning="a size: memory around the server, page cache counted",
        together=Together.FOR_ONE,
    ),
    "limits.read_bytes": LayerKey(
        read=_bytes(4096),
        meaning='a size per second, such as `"100MB"`',
        together=Together.FOR_ONE,
    ),
    "limits.write_bytes": LayerKey(
        read=_bytes(4096),
        meaning="the same for writes; refused with cgroup version 1, where buffered writes escape",
        together=Together.FOR_ONE,
    ),
    "limits.read_operations": LayerKey(
        read=_operations,
        meaning="a number per second",
        together=Together.FOR_ONE,
    ),
    "limits.write_operations": LayerKey(
        read=_operations,
        meaning="the same for writes",
        together=Together.FOR_ONE,
    ),
    "filesystem": LayerKey(
        read=_choice("ext4", "xfs", "btrfs"),
        meaning='`"ext4"`, `"xfs"`, `"btrfs"`: made anew for each run, on a loop device with direct I/O',
        together=Together.FOR_ONE,
    ),
    "storage.mkfs": LayerKey(
        read=_options,
        meaning="options of mkfs, as one text; for every file system that is made",
        together=Together.FOR_ONE,
    ),
    "storage.mount": LayerKey(
        read=_options,
        meaning='mount options, such as `"noatime"`; the same',
        together=Together.FOR_ONE,
    ),
    "storage.size": LayerKey(
        read=_bytes(64 * 1024**2),
        meaning="size of the data's file system; else what the data and the WAL need",
        together=Together.FOR_ONE,
    ),
    "storage.device": LayerKey(
        read=_device,
        meaning="a block device that `/etc/pgstrata/devices` allows, instead of a loop device",
        together=Together.FOR_ONE,
    ),
    "storage.scheduler": LayerKey(
        read=_word,
        meaning="I/O scheduler of the device on which the data lie",
        together=Together.FOR_ONE,
    ),
    "storage.read_ahead": LayerKey(
        read=_bytes(0),
        meaning="a size: read-ahead of that device",
        together=Together.FOR_ONE,
    ),
    "storage.wal": LayerKey(
        read=_place,
        meaning='`"same"` (with the data), `"loop"` (an image of its own), `"memory"`, or a device that '
        "`/etc/pgstrata/devices` allows: where the WAL lies",
        together=Together.FOR_ONE,
    ),
    "storage.installation": LayerKey(
        read=_place,
        meaning='`"same"` (where it is), `"loop"`, `"memory"` or such a device: from where a copy of '
        "the server is started",
        together=Together.FOR_ONE,
    ),
}
"""Every key of a host layer but those of `sysctl`, whose names are the kernel's."""

SYSCTL: Final = LayerKey(read=_sysctl, meaning="a kernel parameter as `sysctl -a` writes it")
"""Every key of the table `sysctl`."""

LAYER_TABLES: Final = tuple(dict.fromkeys([*(key.partition(".")[0] for key in LAYER_KEYS if "." in key), "sysctl"]))
PLAIN_LAYERS: Final = tuple(key for key in LAYER_KEYS if "." not in key)
