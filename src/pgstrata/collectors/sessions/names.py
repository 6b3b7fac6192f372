"""Wait events of all server versions in one spelling: that of the newest.

`names.tsv` holds type and name as an older server prints them, and as 18 does. Sources: `lwlocknames.txt` and
`lwlock.c` of 9.6 to 13, `pgstat.c` of 10 to 13 and `wait_event_names.txt` since 17, of PostgreSQL's own tree; the names
on the right are those of the view pg_wait_events of 18. What changed: up to 9.6 there were two types of LWLocks; 13
renamed LWLocks (their names ended in "Lock", tranches were written_like_this) and the phases of parallel hash joins; 14
made the wait for a buffer's I/O a wait for another process; 16 and 17 respelt the others (WALSync, now WalSync).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

_LWLOCK: Final = "LWLock"
_ANY: Final = "*"


def unify_names(wait_type: str, event: str) -> tuple[str, str]:
    """Type and name of a wait event as the newest server prints them; what is not known stays as it is."""
    names = known_names()
    wait_type, _ = names.get((wait_type, _ANY), (wait_type, _ANY))
    if (wait_type, event) in names:
        return names[wait_type, event]
    if wait_type == _LWLOCK:
        # up to 12 each lock that has a name of its own carries this at its end, and none does since
        return wait_type, event.removesuffix("Lock")
    return wait_type, event


@cache
def known_names() -> dict[tuple[str, str], tuple[str, str]]:
    """Type and name of older servers to those of the newest; the name `*` stands for all of a type."""
    text = (files(__package__) / "names.tsv").read_text("ascii")
    rows = (line.split("\t") for line in text.splitlines())
    return {(wait_type, event): (new_type, new_event) for wait_type, event, new_type, new_event in rows}
