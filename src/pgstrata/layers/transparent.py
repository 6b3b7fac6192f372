"""Transparent huge pages: files of the kernel to values, and the change that sets them for all memory at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.model.changes import Change, ShellScript

_FOLDER: Final = "/sys/kernel/mm/transparent_hugepage"
ANONYMOUS: Final = f"{_FOLDER}/enabled"
SHARED: Final = f"{_FOLDER}/shmem_enabled"
PMD_SIZE: Final = f"{_FOLDER}/hpage_pmd_size"
_RESERVE: Final = "/proc/sys/vm/min_free_kbytes"
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
    files = (ANONYMOUS, SHARED, _RESERVE)
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
