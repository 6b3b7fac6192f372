"""The state of a stopped cluster, read from its control file. Pure.

pg_controldata would say the same, but not every supplier of servers ships it.
"""

from __future__ import annotations

import struct
from typing import Final

from pgstrata.errors import ParseError

CONTROL_FILE: Final = "global/pg_control"

# ControlFileData of src/include/catalog/pg_control.h begins alike in all versions from 8.3 to 18: system_identifier
# (8 bytes), pg_control_version (4), catalog_version_no (4), state (4), in the byte order of the machine.
_VERSION_AND_STATE: Final = "8xI4xI"
_SIZE: Final = struct.calcsize(f"<{_VERSION_AND_STATE}")
_VERSIONS: Final = range(800, 10000)
_STATES: Final = (
    "starting up", "shut down", "shut down in recovery", "shutting down", "in crash recovery", "in archive recovery",
    "in production",
)  # fmt: skip

SHUT_DOWN: Final = _STATES[1]


def parse_cluster_state(content: bytes) -> str:
    """The state as pg_controldata words it, such as "shut down"; "state N" for a number that is not known.

    Raises:
        ParseError: this is no control file.
    """
    for order in ("<", ">"):
        if len(content) < _SIZE:
            break
        version, state = struct.unpack_from(f"{order}{_VERSION_AND_STATE}", content)
        if version in _VERSIONS:
            return _STATES[state] if state < len(_STATES) else f"state {state}"
    raise ParseError(
        "this is not the control file of a PostgreSQL cluster",
        details=(f"it begins with {content[:_SIZE].hex() or 'nothing'}",),
        remedy="remove the dataset's folder; it will be built again",
    )
