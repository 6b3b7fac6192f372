"""The password of a dataset's role, stored so that checking it costs next to nothing.

Clients have one over TCP only, and SCRAM makes both sides hash it 4096 times: milliseconds for each connection, far
more than the way there. Connections would be compared by that. The password is drawn at random, so that nobody guesses
it whatever it is hashed by.
"""

from __future__ import annotations

import hashlib
from typing import Final

# Servers take a password that the client has hashed, of whatever kind new ones are; from 19 on they complain of md5 at
# each connection, and scram_iterations is known.
_SCRAM_FROM: Final = 190000


def render_password(role: str, password: str, version: int) -> str:
    """Statements that give a role its password.

    Args:
        role: its name, which needs no quoting.
        password: letters and digits.
        version: the server's `server_version_num`.
    """
    if version >= _SCRAM_FROM:
        return f"SET scram_iterations = 1;\nALTER ROLE {role} PASSWORD '{password}';"
    hashed = hashlib.md5(f"{password}{role}".encode(), usedforsecurity=False).hexdigest()
    return f"ALTER ROLE {role} PASSWORD 'md5{hashed}';"
