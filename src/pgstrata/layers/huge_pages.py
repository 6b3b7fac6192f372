"""Huge pages, reserved and transparent: files of the kernel to values, and the changes that are made of them.

What belongs here: the kernel's side. What an environment asks for, and whether it has it, belongs to `memory`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import ParseError
from pgstrata.model.changes import Change, ShellScript

POOLS: Final = "/sys/kernel/mm/hugepages"
PAGE_BYTES: Final[Mapping[str, int]] = {"4kB": 4096, "2MB": 2 * 1024**2, "1GB": 1024**3}
"""Levels of the factor `pages`."""

_FIGURES: Final = ("nr_hugepages", "free_hugepages", "resv_hugepages")
_MAPPING: Final = re.compile(r"^[0-9a-f]+-[0-9a-f]+ (?P<mode>[rwxsp-]{4}) ")
_FIELD: Final = re.compile(r"^(?P<name>\w+): +(?P<number>\d+)(?: kB)?$")

# Writing a number takes what the kernel can give at once, which may be less. Compaction moves memory together and
# throws away nothing that is cached: with an emptied page cache this environment would start from another state than
# the others.
_RESERVE: Final = """
pool=$1 wanted=$2
echo "$wanted" >"$pool" || exit
for attempt in 1 2; do
    [ "$(cat "$pool")" -lt "$wanted" ] || exit 0
    echo 1 >/proc/sys/vm/compact_memory || exit 0
    echo "$wanted" >"$pool" || exit 0
done
"""
# Takes away no more than was added, and nothing below the former number. Pages of a server that is about to end stay in
# the pool until it has: waits up to 5 s for it.
_GIVE_BACK: Final = """
pool=$1 added=$2 former=$3
now=$(cat "$pool") || exit
[ "$now" -gt "$former" ] || exit 0
left=$((now - added > former ? now - added : former))
echo "$left" >"$pool" || exit
tries=25
while [ "$(cat "$pool")" -gt "$left" ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.2; done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The huge pages of one size: pages in all, not in use, and of these promised to somebody; `page` is bytes."""

    page: int
    total: int
    free: int
    promised: int

    def target(self, pages: int) -> int:
        """How many pages in all make `pages` of them available, beside those that others use or were promised.

        Pages of the pool that belong to nobody count as available; the pool is never made smaller.
        """
        return max(self.total, self.total - (self.free - self.promised) + pages)

    def change(self, target: int) -> Change:
        """Make the pool larger; undoing it takes away what was added, and waits for a server that is about to end."""
        file = f"{pool_folder(self.page)}/nr_hugepages"
        return Change(
            what=f"huge pages of {self.page // 1024} kB",
            value=str(target),
            read=ShellScript(text='cat "$1"', arguments=(file,)),
            do=ShellScript(text=_RESERVE, arguments=(file, str(target))),
            undo=ShellScript(text=_GIVE_BACK, arguments=(file, str(target - self.total))),
        )


def pool_folder(page: int) -> str:
    """The folder of the kernel with the pool of pages of that size in bytes."""
    return f"{POOLS}/hugepages-{page // 1024}kB"


def pool_files(page: int) -> tuple[str, ...]:
    """What `parse_pool` reads."""
    return tuple(f"{pool_folder(page)}/{figure}" for figure in _FIGURES)


def parse_pool(page: int, files: Mapping[str, bytes]) -> Pool | None:
    """The pool of pages of that size in bytes; None where the kernel has none."""
    found = [files[path] for path in pool_files(page) if path in files]
    if len(found) < len(_FIGURES):
        return None
    total, free, promised = (int(content) for content in found)
    return Pool(page=page, total=total, free=free, promised=promised)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """A mapping that processes share: its size and that of its pages in bytes.

    `eligible` says whether the kernel may use transparent huge pages for it, None where the kernel does not say;
    `transparent` are the bytes that the process has on such pages.
    """

    bytes: int
    page: int
    eligible: bool | None
    transparent: int = 0


def parse_shared_memory(smaps: bytes) -> SharedMemory:
    """The largest shared mapping of a process, which is a server's main shared memory; of /proc/PID/smaps (proc(5)).

    Raises:
        ParseError: there is none in it.
    """
    found = max(_shared_mappings(smaps.decode("utf-8", "replace")), key=lambda fields: fields["Size"], default=None)
    if found is None:
        raise ParseError("no shared mapping was found", where="/proc/PID/smaps", details=(repr(smaps[:80]),))
    eligible = found.get("THPeligible")
    return SharedMemory(
        bytes=found["Size"] * 1024,
        page=found["KernelPageSize"] * 1024,
        eligible=None if eligible is None else eligible > 0,
        transparent=found.get("ShmemPmdMapped", 0) * 1024,
    )


def _shared_mappings(text: str) -> Iterator[Mapping[str, int]]:
    """Fields with numbers, of each mapping that is shared."""
    fields: dict[str, int] | None = None
    for line in text.splitlines():
        if head := _MAPPING.match(line):
            if fields:
                yield fields
            fields = {} if head.group("mode").endswith("s") else None
        elif fields is not None and (field := _FIELD.match(line)):
            fields[field.group("name")] = int(field.group("number"))
    if fields:
        yield fields


_FOLDER: Final = "/sys/kernel/mm/transparent_hugepage"
ANONYMOUS: Final = f"{_FOLDER}/enabled"
SHARED: Final = f"{_FOLDER}/shmem_enabled"
PMD_SIZE: Final = f"{_FOLDER}/hpage_pmd_size"
_LEAST_FREE: Final = "/proc/sys/vm/min_free_kbytes"
_SHARED_WORD: Final[Mapping[str, str]] = {"always": "always", "madvise": "advise", "never": "never"}
_CHOSEN: Final = re.compile(r"\[(\w+)\]")
_BY_SIZE: Final = re.compile(r"^(?P<file>.*/hugepages-(?P<size>\d+)kB/\w+):.*\[(?P<word>\w+)\]", re.MULTILINE)

LIST_BY_SIZE: Final = ShellScript(
    text='for file in "$1"/hugepages-*/enabled "$1"/hugepages-*/shmem_enabled; do\n'
    '    [ -r "$file" ] && echo "$file: $(cat "$file")"\ndone; true',
    arguments=(_FOLDER,),
)
"""Prints what kernels from 6.8 on let one set for each size apart; see `sizes_apart`."""

_READ: Final = """
chosen() { sed 's/.*\\[\\(.*\\)\\].*/\\1/' "$1"; }
echo "$(chosen "$1") $(chosen "$2") $(cat "$3")"
"""
_WRITE: Final = 'echo "$4" >"$1" && echo "$5" >"$2"'
# The kernel changes min_free_kbytes with them (set_recommended_min_free_kbytes of mm/khugepaged.c). It is written only
# if it did not come back, because the kernel remembers that somebody wrote it.
_UNDO: Final = """
set -- "$1" "$2" "$3" $4
echo "$4" >"$1" && echo "$5" >"$2" || exit
[ "$(cat "$3")" = "$6" ] || echo "$6" >"$3"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transparent:
    """What the kernel does for anonymous memory and for shared memory, in its own words."""

    anonymous: str
    shared: str


def asked_of(level: str) -> Transparent:
    """What a level of the factor `thp` stands for: the kernel calls madvise advise where memory is shared."""
    return Transparent(anonymous=level, shared=_SHARED_WORD[level])


def parse_transparent(files: Mapping[str, bytes]) -> Transparent | None:
    """The words in brackets; None where the kernel has no such files."""
    words = [_CHOSEN.search(files.get(path, b"").decode()) for path in (ANONYMOUS, SHARED)]
    anonymous, shared = words
    return Transparent(anonymous=anonymous.group(1), shared=shared.group(1)) if anonymous and shared else None


def transparent_change(wanted: Transparent) -> Change:
    """Set both; its state are both words and vm.min_free_kbytes, which follows them."""
    files = (ANONYMOUS, SHARED, _LEAST_FREE)
    return Change(
        what="transparent huge pages",
        value=f"{wanted.anonymous} {wanted.shared}",
        read=ShellScript(text=_READ, arguments=files),
        do=ShellScript(text=_WRITE, arguments=(*files, wanted.anonymous, wanted.shared)),
        undo=ShellScript(text=_UNDO, arguments=files),
    )


def of_state(state: str) -> Transparent | None:
    """What `read` of the change printed."""
    words = state.split()
    return Transparent(anonymous=words[0], shared=words[1]) if len(words) > 1 else None


def sizes_apart(listed: str, pmd_bytes: int) -> Iterator[tuple[str, str]]:
    """Files of single sizes that do not follow the ones for all sizes, each with the word that it should have.

    The size that a page table entry one level up maps must inherit, as it does from the start; others may be off.

    Args:
        listed: what `LIST_BY_SIZE` printed.
        pmd_bytes: that size.
    """
    for match in _BY_SIZE.finditer(listed):
        main = int(match.group("size")) * 1024 == pmd_bytes
        if match.group("word") not in ({"inherit"} if main else {"inherit", "never"}):
            yield match.group("file"), "inherit" if main else "never"
