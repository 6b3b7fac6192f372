"""Versions and compilers, from the texts that servers and their programs print, or that are compiled into them. Pure.

Reading the latter needs no program that a distribution may have left out (pg_config), and nothing has to run. Finding
and running programs does not belong here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import ParseError
from pgstrata.model.server import ServerVersion

_PROGRAM: Final = re.compile(r"^(?P<program>[\w.-]+) \((?P<product>[^()]+)\) (?P<rest>\S.*)$")
_BANNER: Final = re.compile(r"^(?P<product>PostgreSQL|EnterpriseDB|Postgres ?Pro) (?P<rest>\d.*)$")
_NUMBER: Final = re.compile(
    r"^(?P<parts>\d{1,9}(?:\.\d{1,9})*)(?P<stage>devel|alpha\d+|beta\d+|rc\d+|lts\d+)?(?![A-Za-z0-9])"
)
_FORK: Final = re.compile(
    r"\((?P<bracketed>(?:EnterpriseDB|Greenplum|Cloudberry|IvorySQL|Postgres ?Pro)[^()]*)\)"
    r"|\b(?P<named>Percona(?: Distribution| Server)?|Redshift [\d.]+)"
    r"|\b(?P<pro>Postgres ?Pro(?: Enterprise| Standard)?(?: [\d.]+)?)"
    r"|-(?P<yugabyte>YB-[\w.-]+)"
)
_COMPILER: Final = re.compile(r"compiled by (?P<compiler>.+?)(?:, (?:32|64)-bit|$)")
_TWO_PART_MAJOR_UNTIL: Final = 10
_OLDEST: Final = 7


def parse_server_version(text: str) -> ServerVersion:
    """The version from `postgres --version`, `SELECT version()` or `SHOW server_version`.

    `number` is PostgreSQL's server_version_num; development versions count as minor 0, as they do there. A fork that
    names itself stands in `fork`; the number is that of the PostgreSQL which it says it is.

    Raises:
        ParseError: the text has another shape, or is no PostgreSQL.
    """
    line = text.strip().partition("\n")[0].strip()
    product, rest = _split_product(line)
    printed = re.split(r" on \S+, |, compiled by ", rest)[0].strip()
    match = _NUMBER.match(printed)
    if match is None:
        raise _unknown(line)
    number = _number(match["parts"], line)
    fork = product if product not in {"", "PostgreSQL"} else _fork(rest)
    return ServerVersion(text=printed, number=number, fork=fork)


def _split_product(line: str) -> tuple[str, str]:
    for shape in (_PROGRAM, _BANNER):
        match = shape.match(line)
        if match is not None:
            return match["product"], match["rest"]
    return "", line


def _fork(rest: str) -> str:
    match = _FORK.search(rest)
    if match is None:
        return ""
    return next(group for group in match.groups() if group is not None).strip()


def _number(parts: str, line: str) -> int:
    numbers = [int(part) for part in parts.split(".")] + [0, 0]
    major, second, third = numbers[:3]
    if major < _OLDEST or max(second, third) > 99:  # noqa: PLR2004 - two digits each in server_version_num
        raise _unknown(line)
    if major < _TWO_PART_MAJOR_UNTIL:
        return major * 10000 + second * 100 + third
    # A third part is the packager's or the fork's own count: server_version_num does not know it.
    return major * 10000 + second


def _unknown(line: str) -> ParseError:
    return ParseError(
        "this is not a version of PostgreSQL that pgstrata can read",
        details=(line or "(nothing was printed)",),
        remedy="check that the program or server is PostgreSQL 8.3 or newer",
    )


def parse_compiler(text: str) -> str:
    """The compiler from `SELECT version()`, such as "gcc (Debian 12.2.0-14) 12.2.0"; empty if the text names none."""
    match = _COMPILER.search(text)
    return match["compiler"].strip() if match else ""


_COMPILED_IN: Final = re.compile(rb"PostgreSQL \d[^\0\n]* on [^\0\n]{3,120}, compiled by [^\0\n]+")
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
    banner = _COMPILED_IN.search(content)
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
