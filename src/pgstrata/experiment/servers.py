"""Levels of the factor `server`, and connection strings without their passwords.

What belongs here: text to `ServerSpec`. Whether such a server exists is found out by the servers' own room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from pgstrata.errors import UsageError
from pgstrata.experiment.keys import CATALOGUE_MAJORS, MAVEN_MAJORS, SERVER_LEVELS, WrongValueError, nearest
from pgstrata.libpq import KEYWORDS, parse_conninfo
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.secret import Secret

_SECRET_WORDS: Final = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
_KEYWORD: Final = re.compile(
    rf"\b({'|'.join(_SECRET_WORDS)})(\s*=\s*)('(?:\\.|[^'\\])*(?:'|$)|(?:\\.|[^\s\\])+)", re.IGNORECASE | re.DOTALL
)
_USERINFO: Final = re.compile(r"(postgres(?:ql)?://[^:/?#@]*:)([^/]*|[^?#]*)(?=@)", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"([?&])([^=&]*)=([^&]*)")
_URI: Final = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
# As other programs call them.
_MEANT: Final = {
    "passwd": "password", "pass": "password", "pwd": "password", "username": "user", "uid": "user",
    "database": "dbname", "db": "dbname", "hostname": "host", "server": "host",
}  # fmt: skip
_LEVELS: Final = ("embedded", *CATALOGUE_MAJORS)
_KINDS: Final = ("prefix", "build", "maven", "dsn")


def mask_conninfo(text: str) -> str:
    """A connection string with its passwords masked; texts without a password come back as they are.

    Where a string is ambiguous more is masked rather than less.
    """
    masked = _USERINFO.sub(lambda match: match[1] + Secret.MASK, text)
    if _URI.search(masked):
        # A parameter of a URI ends at the next &, which the keyword form does not know.
        return _PARAMETER.sub(_masked_parameter, masked)
    return _KEYWORD.sub(lambda match: match[1] + match[2] + Secret.MASK, masked)


def _masked_parameter(match: re.Match[str]) -> str:
    secret = unquote(match[2]).strip().lower() in _SECRET_WORDS
    return f"{match[1]}{match[2]}={Secret.MASK}" if secret else match[0]


def parse_server(level: str, conninfo: Mapping[str, Secret] | None = None) -> ServerSpec:
    """A level such as 16, embedded, maven:9.6, build:DIR@COMMIT, prefix:DIR, ./a/install, dsn:SERVICE or a conninfo.

    Args:
        level: the level as written.
        conninfo: complete connection strings by their masked form, for levels that were masked before.

    Raises:
        WrongValueError: no server is meant by it, or none that this version can provide.
    """
    text = level.strip()
    kind, colon, rest = text.partition(":")
    if text == "embedded":
        return ServerSpec(kind=ServerKind.EMBEDDED)
    if text in CATALOGUE_MAJORS:
        return ServerSpec(kind=ServerKind.CATALOGUE, value=text)
    if _URI.match(text):
        return _parse_dsn(text, conninfo or {})
    if colon and kind in _KINDS:
        return _parse_kind(kind, rest.strip(), conninfo or {})
    if text.startswith((".", "~")) or ("/" in text and ":" not in text):
        return _parse_folder(ServerKind.PREFIX, text)
    raise _unknown(text)


def _parse_kind(kind: str, rest: str, conninfo: Mapping[str, Secret]) -> ServerSpec:
    if kind == "dsn":
        return _parse_dsn(rest, conninfo)
    return _parse_maven(rest) if kind == "maven" else _parse_folder(ServerKind(kind), rest)


def _parse_maven(major: str) -> ServerSpec:
    if major in MAVEN_MAJORS:
        return ServerSpec(kind=ServerKind.MAVEN, value=major)
    listed = ", ".join(MAVEN_MAJORS)
    older = next((known for known in MAVEN_MAJORS if major.startswith(f"{known}.")), None)
    if older:
        raise WrongValueError(
            f"'maven:{major}': majors are asked for, not minor versions",
            f"write 'maven:{older}'; for one minor version install it and write prefix:DIR",
        )
    raise WrongValueError(
        f"'maven:{major}' is no server" if major else "maven: names no server",
        f"allowed after maven: are {listed}; for other versions install them and write prefix:DIR",
    )


def _parse_folder(kind: ServerKind, path: str) -> ServerSpec:
    folder = path if path == "/" else path.rstrip("/")
    if folder and "\0" not in folder and "\n" not in folder:
        return ServerSpec(kind=kind, value=folder)
    if kind is ServerKind.PREFIX:
        remedy = "write the folder that holds bin/postgres: prefix:/usr/lib/postgresql/16"
        raise WrongValueError("prefix: names no folder", remedy)
    remedy = "write the folder that holds PostgreSQL's configure, a tarball, or a commit: build:/src/pg@master"
    raise WrongValueError("build: names no source", remedy)


def _parse_dsn(text: str, conninfo: Mapping[str, Secret]) -> ServerSpec:
    if not text:
        raise WrongValueError(
            "dsn: names no server", "write dsn:SERVICE (of pg_service.conf), dsn:postgresql://HOST/DB or dsn:host=HOST"
        )
    if "=" not in text and not _URI.match(text):
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", text):
            raise WrongValueError(
                "dsn: is neither the name of a service nor a connection string",
                "write dsn:SERVICE (letters, digits, _, ., -), dsn:postgresql://HOST/DB or dsn:host=HOST",
            )
        return ServerSpec(kind=ServerKind.DSN, value=text, conninfo=Secret(f"service={text}"))
    masked = mask_conninfo(text)
    if Secret.MASK not in text:
        _check_keywords(text)
        return ServerSpec(kind=ServerKind.DSN, value=masked, conninfo=Secret(text))
    if masked not in conninfo:
        raise WrongValueError(
            "the password of this connection string is masked",
            "leave the password out and keep it in ~/.pgpass, or name a service of pg_service.conf: dsn:SERVICE",
        )
    return ServerSpec(kind=ServerKind.DSN, value=masked, conninfo=conninfo[masked])


def _check_keywords(text: str) -> None:
    """Refuse keywords that libpq would refuse later: the value of an unknown one would not be masked."""
    try:
        unknown = sorted(parse_conninfo(text).keys() - KEYWORDS)
    except UsageError as error:
        raise WrongValueError(error.what, error.remedy) from None
    if not unknown:
        return
    meant = _MEANT.get(unknown[0]) or nearest(unknown[0], sorted(KEYWORDS))
    hint = f"did you mean {meant!r}? " if meant else ""
    raise WrongValueError(
        "the connection string has a keyword that libpq does not know (not shown: it may be part of a password)",
        f"{hint}Put a value that contains spaces in single quotes",
    )


def _unknown(text: str) -> WrongValueError:
    shown = mask_conninfo(text)
    kind, colon, rest = text.partition(":")
    near_kind = nearest(kind, _KINDS) if colon else None
    if near_kind:
        return WrongValueError(f"{shown!r} is no server", f"did you mean {near_kind}:{mask_conninfo(rest)!s}?")
    allowed = SERVER_LEVELS
    major, dot, _ = text.partition(".")
    if dot and major in CATALOGUE_MAJORS:
        return WrongValueError(
            f"{shown!r}: the catalogue is asked for majors, not for minor versions",
            f"write {major!r}; for one minor version install it and write prefix:DIR",
        )
    if text in MAVEN_MAJORS:
        return WrongValueError(f"{shown!r} is not in the catalogue", f"write 'maven:{text}', which Maven fetches")
    near = nearest(text, _LEVELS) if not re.fullmatch(r"9\.\d|1[0-3]|19.*|2\d.*", text) else None
    if near:
        return WrongValueError(f"{shown!r} is no server", f"did you mean {near!r}? Allowed: {allowed}")
    return WrongValueError(
        f"{shown!r} is no server that this version of pgstrata can provide",
        f"allowed: {allowed}; for other versions install them and write prefix:DIR",
    )


def server_slugs(specs: Sequence[ServerSpec]) -> tuple[str, ...]:
    """Short readable names of servers: pg18, embedded; installations by the part of their paths that differs."""
    folders = [spec.value.split("/") for spec in specs if spec.kind is ServerKind.PREFIX]
    common = _common_tail(folders) if len(folders) > 1 else 0
    return tuple(_slug(spec, common) for spec in specs)


def _common_tail(folders: list[list[str]]) -> int:
    count = 0
    shortest = min(len(folder) for folder in folders)
    while count < shortest - 1 and len({folder[-1 - count] for folder in folders}) == 1:
        count += 1
    return count


def _slug(spec: ServerSpec, common_tail: int) -> str:
    match spec.kind:
        case ServerKind.EMBEDDED:
            return "embedded"
        case ServerKind.CATALOGUE | ServerKind.MAVEN:
            return f"pg{spec.value}"
        case ServerKind.BUILD:
            return _source_slug(spec.value)
        case ServerKind.PREFIX:
            parts = spec.value.split("/")
            last = parts[len(parts) - 1 - common_tail] or spec.value
            return f"pg{last}" if re.fullmatch(r"[\d.]+", last) else last
        case ServerKind.DSN:
            return _dsn_slug(spec.value)


def _source_slug(value: str) -> str:
    """The commit where one is named, or the last part of the path."""
    path, at, commit = value.rpartition("@")
    return commit if at and path else re.sub(r"\.(tar\.\w+|tgz)$", "", value.rpartition("/")[2]) or "build"


def _dsn_slug(value: str) -> str:
    if _URI.match(value):
        parts = urlsplit(value.replace(Secret.MASK, ""))
        location = parts.netloc.rpartition("@")[2]
        return "-".join(part for part in (location, parts.path.strip("/")) if part) or "dsn"
    words = dict(re.findall(r"(\w+)\s*=\s*('[^']*'|\S+)", value))
    named = [words[key].strip("'") for key in ("service", "host", "hostaddr", "port", "dbname") if key in words]
    return "-".join(named) or value
