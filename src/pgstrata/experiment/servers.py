"""Levels of the factor `server`, and connection strings without their passwords.

What belongs here: text to `ServerSpec`. Whether such a server exists is found out by the servers' own room.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from pgstrata.errors import UsageError
from pgstrata.experiment.keys import CATALOGUE_MAJORS, MAVEN_MAJORS, SERVER_LEVELS, WrongValueError, nearest
from pgstrata.libpq import KEYWORDS, SECRETS, check_hideable, parse_conninfo, render_passfile, unreadable
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.secret import Secret

# What comes behind ? or & in a URI ends at the next &, which the form with keywords does not know.
_KEYWORD: Final = re.compile(
    rf"(?<![?&])\b({'|'.join(sorted(SECRETS))})(\s*=\s*)('(?:\\.|[^'\\])*+(?:'|\\?\Z)|(?:\\.|[^\s\\])+)",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)
# Also with a scheme that is misspelt, or taken for a path.
_USERINFO: Final = re.compile(r"(\b(?:pg|postg|psql)\w*:/+[^:@]*:)([^/]*|[^?#]*|.*)(?=@)", re.DOTALL | re.IGNORECASE)
_PARAMETER: Final = re.compile(r"([?&])([^?=&]*)=([^&]*)")
_URI: Final = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_PLACE: Final = re.compile(r"postgres(?:ql)?://(?:[^@/]*@)?([^/?]*)/*([^?]*)")
_OUTER_BLANKS: Final = re.compile(r"\A\s+|(?<![\\\s])\s+\Z", re.ASCII)
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
    before, at, after = text.rpartition("@")  # without one ahead the expression would look for it at each beginning
    masked = _USERINFO.sub(lambda match: match[1] + Secret.MASK, before + at) + after
    masked = _PARAMETER.sub(_masked_parameter, masked)
    return _KEYWORD.sub(lambda match: match[1] + match[2] + Secret.MASK, masked)


def _masked_parameter(match: re.Match[str]) -> str:
    secret = unquote(match[2]).strip().lower() in SECRETS
    return f"{match[1]}{match[2]}={Secret.MASK}" if secret else match[0]


def mask_level(level: str) -> tuple[str, Mapping[str, Secret]]:
    """A level without its passwords, and what `parse_server` needs to complete it."""
    masked = mask_conninfo(level)
    if masked == level:
        return level, {}
    return masked, {_connection_string(masked): Secret(_connection_string(level))}


def _connection_string(level: str) -> str:
    """A level without `dsn:` and the blanks of ASCII around it, of which libpq takes a last one behind a backslash."""
    return _OUTER_BLANKS.sub("", _OUTER_BLANKS.sub("", level).removeprefix("dsn:"))


def parse_server(level: str, conninfo: Mapping[str, Secret] | None = None) -> ServerSpec:
    """A level such as 16, embedded, maven:9.6, build:DIR@COMMIT, prefix:DIR, ./a/install, dsn:SERVICE or a conninfo.

    Args:
        level: the level as written.
        conninfo: complete connection strings by their masked form, for levels that were masked before.

    Raises:
        WrongValueError: no server is meant by it, or none that this version can provide.
    """
    text = _OUTER_BLANKS.sub("", level)
    kind, colon, rest = text.partition(":")
    if text == "embedded":
        return ServerSpec(kind=ServerKind.EMBEDDED)
    if text in CATALOGUE_MAJORS:
        return ServerSpec(kind=ServerKind.CATALOGUE, value=text)
    if _URI.match(text) or (colon and kind == "dsn"):
        return _parse_dsn(_connection_string(text), conninfo or {})
    if colon and kind in _KINDS:
        return _parse_maven(rest.strip()) if kind == "maven" else _parse_folder(ServerKind(kind), rest.strip())
    if text.startswith((".", "~")) or ("/" in text and ":" not in text):
        return _parse_folder(ServerKind.PREFIX, text)
    raise _unknown(text)


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
        f"'maven:{major}' is not a server" if major else "maven: names no server",
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
    secret = conninfo.get(masked) if Secret.MASK in text else Secret(text)
    if secret is None:
        raise WrongValueError(
            "the password of this connection string is masked",
            "leave the password out and keep it in ~/.pgpass, or name a service of pg_service.conf: dsn:SERVICE",
        )
    _check_connection(secret.reveal(), masked)
    return ServerSpec(kind=ServerKind.DSN, value=masked, conninfo=secret)


def _check_connection(text: str, masked: str) -> None:
    """Refuse what libpq would refuse later, and what it would not read alike but for the secrets that are masked."""
    try:
        said, shown = parse_conninfo(text), parse_conninfo(masked)
        render_passfile(said.get("password", ""))
        for keyword in said.keys() - {"password"}:
            check_hideable(keyword)
    except UsageError as error:
        raise WrongValueError(error.what, error.remedy) from None
    unknown = sorted(said.keys() - KEYWORDS)
    if unknown:
        raise _unknown_keyword(unknown[0])
    read = {key: shown.get(key) if key in SECRETS else value for key, value in said.items()}
    if read != shown or any(shown[key] not in {"", Secret.MASK} for key in SECRETS & shown.keys()):
        raise WrongValueError(unreadable().what, unreadable().remedy)


def _unknown_keyword(keyword: str) -> WrongValueError:
    meant = _MEANT.get(keyword) or nearest(keyword, sorted(KEYWORDS))
    hint = f"did you mean {meant!r}? " if meant else ""
    return WrongValueError(
        "the connection string has a keyword that libpq does not know (not shown: it may be part of a password)",
        f"{hint}Put a value that contains spaces in single quotes",
    )


def _unknown(text: str) -> WrongValueError:
    shown = mask_conninfo(text)
    kind, colon, rest = text.partition(":")
    near_kind = nearest(kind, _KINDS) if colon else None
    if near_kind:
        return WrongValueError(f"{shown!r} is not a server", f"did you mean {near_kind}:{mask_conninfo(rest)!s}?")
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
        return WrongValueError(f"{shown!r} is not a server", f"did you mean {near!r}? Allowed: {allowed}")
    return WrongValueError(
        f"{shown!r} is not a server that this version of pgstrata can provide",
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
    if place := _PLACE.match(value):
        return "-".join(part for part in place.groups() if part) or "dsn"
    words = dict(re.findall(r"(\w+)\s*=\s*('[^']*'|\S+)", value))
    named = [words[key].strip("'") for key in ("service", "host", "hostaddr", "port", "dbname") if key in words]
    return "-".join(named) or value
