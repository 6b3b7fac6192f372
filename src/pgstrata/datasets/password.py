"""The password of a dataset's role, stored so that checking it costs next to nothing.

Clients have one over TCP only, and SCRAM makes both sides hash it 4096 times: milliseconds for each connection, far
more than the way there. Connections would be compared by that. The password is drawn at random, so that nobody guesses
it whatever it is hashed by. It is hashed here, so that no server reads it in a statement that it could log.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from typing import Final

# Servers take a password that the client has hashed, of whatever kind new ones are; from 19 on they complain of md5 at
# each connection.
_SCRAM_FROM: Final = 190000


def render_password(role: str, password: str, version: int) -> str:
    """The statement that gives a role its password.

    Args:
        role: its name, which needs no quoting.
        password: letters and digits.
        version: the server's `server_version_num`.
    """
    if version >= _SCRAM_FROM:
        # the same password has the same salt, which tells nothing: it is as random as the password
        hashed = hash_scram(password, hashlib.sha256(f"{role}:{password}".encode()).digest()[:16], iterations=1)
    else:
        hashed = "md5" + hashlib.md5(f"{password}{role}".encode(), usedforsecurity=False).hexdigest()
    return f"ALTER ROLE {role} PASSWORD '{hashed}';"


def hash_scram(password: str, salt: bytes, *, iterations: int) -> str:
    """A password as PostgreSQL stores it for SCRAM-SHA-256 (RFC 5803, RFC 7677)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, server64 = (b64encode(key).decode() for key in (salt, stored, server))
    return f"SCRAM-SHA-256${iterations}:{salt64}${stored64}:{server64}"
