"""What a postgres binary says about itself: version, compiler and configuration are compiled in as texts. Pure.

Reading them needs no program that a distribution may have left out (pg_config), and nothing has to run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import ParseError
from pgstrata.model.server import ServerVersion
from pgstrata.servers.version import parse_compiler, parse_server_version

_BANNER: Final = re.compile(rb"PostgreSQL \d[^\0\n]* on [^\0\n]{3,120}, compiled by [^\0\n]+")
_CONFIGURE: Final = re.compile(rb"\0( ?'(?:--|[A-Z_]+=)[^\0\n]*)\0")
_FLAGS: Final = re.compile(rb"\0(-[A-Za-z][^\0\n]* -O[0-3sgz](?: [^\0\n]*)?|-O[0-3sgz](?: -[^\0\n]*)?)\0")
# The condition of the assertion at the end of every critical section; compiled in only where assertions are on, however
# they were asked for: by configure, by meson, which keeps no record of it, or among the flags.
_ASSERTION: Final = b"CritSectionCount > 0"
_TEXT: Final = re.compile(rb"[\x20-\x7e]{8,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryFacts:
    """Facts compiled into a server. `configure` and `cflags` are empty where they cannot be found.

    `assertions` is whether it was built with assertions, which make it slower.
    """

    version: ServerVersion
    compiler: str
    configure: str
    cflags: str
    assertions: bool


def parse_postgres_binary(content: bytes) -> BinaryFacts:
    """The facts in the content of bin/postgres.

    Raises:
        ParseError: the file has no version text, so it is no PostgreSQL server.
    """
    banner = _BANNER.search(content)
    if banner is None:
        raise ParseError(
            "the program has no version text compiled in, so it is no PostgreSQL server",
            remedy="name the folder that holds bin/postgres itself, not a wrapper around it",
        )
    text = banner[0].decode("utf-8", "replace")
    return BinaryFacts(
        version=parse_server_version(text),
        compiler=parse_compiler(text),
        configure=_first(_CONFIGURE, content),
        cflags=_first(_FLAGS, content),
        assertions=_ASSERTION in content,
    )


def _first(pattern: re.Pattern[bytes], content: bytes) -> str:
    for match in pattern.finditer(content):
        if _TEXT.fullmatch(match[1]):
            return match[1].decode("ascii").strip()
    return ""


def has_assertions(configure: str) -> bool:
    """Whether configure, or somebody's record of meson, says that a server was built with assertions."""
    return re.search(r"--enable-cassert(?!=no)|-Dcassert=true", configure) is not None


def has_tls(configure: str) -> bool:
    """Whether a server was built with TLS: by configure (--with-openssl, --with-ssl=…), or by meson."""
    return re.search(r"--with-(openssl|ssl)\b(?!=no)|-Dssl=openssl", configure) is not None
