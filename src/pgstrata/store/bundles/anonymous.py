"""Replaces names, addresses, paths and serial numbers in the files of a study by stand-ins.

The same name becomes the same stand-in everywhere. Figures, versions and texts of queries are not changed. The kernel's
messages are left out: they are full of serial numbers, and no figure is derived from them.
"""

from __future__ import annotations

import gzip
import ipaddress
import re
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any, Final

from pgstrata.errors import ParseError, StudyError
from pgstrata.experiment.keys import slug
from pgstrata.model.codec import parse_json
from pgstrata.model.packed import unpack
from pgstrata.plan.identity import identify
from pgstrata.store.bundles.terms import Terms, is_of_system, is_ordinary
from pgstrata.store.evidence import EVIDENCE, FINGERPRINTS, HEADER
from pgstrata.store.serialise import parse_plan_file, render_json
from pgstrata.store.study import PLAN_FILE

LEFT_OUT: Final = ("host.dmesg.txt",)
STAND_IN: Final = "00000000-0000-4000-8000-"
"""The beginning of what stands for a UUID. Numbers follow, from 1 in each bundle: two bundles may have the same."""
_OF_CLIENT: Final = re.compile(r"^client\.(?:\d+\.)?")
_FIGURES: Final = ("transactions.", "slices.txt", "slices.marks", "canary.")
"""Parts of the names of files that hold only figures."""
_HEX: Final = "[0-9A-Fa-f]"
_PARTS: Final = {
    "uuid": rf"(?<!{_HEX}){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?!{_HEX})",
    "mac": rf"(?<![\w:])(?:{_HEX}{{2}}:){{5}}{_HEX}{{2}}(?![\w:])",
    "ipv6": rf"(?<![\w:.])(?:{_HEX}{{0,4}}:){{2,7}}{_HEX}{{0,4}}(?![\w:.])",
    "ipv4": r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)",
    "serial": (
        r"\b(?i:serial(?:[ _-]?(?:number|no|num))?|machine[_-]id|asset[_ -]tag)\s*[=:]\s*[\"']?"
        r"(?P<number>[A-Za-z0-9][\w.-]{3,})"
    ),
    "hostname": r"(?<=/proc/sys/kernel/hostname:)\S+|(?<=/proc/sys/kernel/domainname:)[^\s(]\S*",
    "mail": r"(?P<user>[A-Za-z0-9_][\w.+-]{0,63})@(?P<host>[A-Za-z0-9][\w-]*(?:\.[\w-]+)*)",
    "path": r"(?<![^\s'\"=:,(<>\[|;{])(?:/[\w.+@%~-]+)+",
}
"""Patterns of what is replaced everywhere, in the order in which they are tried."""


class Anonymous:
    """Changes all files of a study in the same way; implements `pack.Rewrite`.

    Args:
        terms: names to be replaced.
    """

    def __init__(self, terms: Terms) -> None:
        self._stand_ins: dict[str, dict[str, int]] = {}
        self._known: dict[str, tuple[str, str]] = {}
        # names with a domain first: a short name that several machines share counts as that of one of them
        for name in sorted(terms.hosts, key=lambda name: "." not in name):
            self._know(name, "host")
        for kind, names in (("user", terms.users), ("name", terms.words)):
            for name in names:
                self._know(name, kind)
        self._terms = _compile_terms(self._known)
        self._pattern = _compile(self._terms)
        self.identity = ""
        self.left_out: set[str] = set()
        self.kept = terms.kept

    def _know(self, name: str, kind: str) -> None:
        """Note a name as it is written in texts and in names of environments; a machine's also without its domain."""
        whole = name.casefold()
        stand_in = self._known.setdefault(whole, (kind, whole))
        self._known.setdefault(slug(whole).casefold(), stand_in)
        if kind == "host" and not is_ordinary(short := whole.partition(".")[0]):
            self._known.setdefault(short, stand_in)

    # ------------------------------------------------------------------------------------- files

    def path(self, path: str) -> str:
        """The changed path of a file, relative to the study's folder; empty if the file is left out."""
        name = PurePosixPath(path).name
        if _OF_CLIENT.sub("", name) in LEFT_OUT:
            self.left_out.add(name)
            return ""
        top, *parts = path.split("/")
        named = 3 if top == EVIDENCE else len(parts) if top == FINGERPRINTS else 0
        return "/".join((top, *map(self.text, parts[:named]), *parts[named:]))

    def content(self, path: str, content: bytes) -> bytes:
        """The changed content of a file; the plan has to come first, because other files name its identity."""
        name = PurePosixPath(path).name
        if path == PLAN_FILE:
            return self._plan(content)
        if any(figures in name for figures in _FIGURES):
            return content
        if name == HEADER:
            return self._header(content)
        if name.endswith(".json"):
            return self._json(content)
        if name.endswith(".gz"):
            return self._packed(name, content)
        return self._bytes(content)

    def _plan(self, content: bytes) -> bytes:
        """The plan gets another identity, because its identity depends on names of hosts and on paths."""
        data = self.value(parse_json(content))
        plan = parse_plan_file(render_json(data), where=PLAN_FILE).plan
        self.identity = identify(plan.experiment, plan.designs, plan.horizon)
        data["plan"]["identity"] = self.identity
        names = [each.name for each in plan.experiment.environments]
        if len(set(names)) < len(names):
            raise StudyError(
                "without names, two environments would have the same name",
                where=", ".join(sorted(name for name in names if names.count(name) > 1)),
                remedy="no environment may have the name of a stand-in, such as host-1; or bundle the study without "
                "--anonymous",
            )
        return render_json(data)

    def _header(self, content: bytes) -> bytes:
        data = self.value(parse_json(content))
        data["plan"] = self.identity
        return render_json(data, indent=1)

    def _json(self, content: bytes) -> bytes:
        try:
            return render_json(self.value(parse_json(content)), indent=1)
        except (ValueError, RecursionError):
            return self._bytes(content)  # it is called so and is none, or is nested too deeply

    def _packed(self, name: str, content: bytes) -> bytes:
        try:
            whole = unpack(content, name)
        except ParseError:
            return b""  # it cannot be unpacked, so names in it could not be replaced
        return gzip.compress(self._bytes(whole), mtime=0)

    def _bytes(self, content: bytes) -> bytes:
        return self.text(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    # ------------------------------------------------------------------------------------- values

    def value(self, value: Any) -> Any:
        """A JSON value in which every text is changed, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def text(self, text: str) -> str:
        """A text in which names are replaced by stand-ins."""
        return self._pattern.sub(self._replace, text)

    @property
    def numbers(self) -> tuple[tuple[str, int], ...]:
        """How many different things were replaced, by kind."""
        return tuple((kind, len(found)) for kind, found in sorted(self._stand_ins.items()))

    def _replace(self, match: re.Match[str]) -> str:
        whole = match[0]
        match match.lastgroup:
            case "uuid":
                return f"{STAND_IN}{self._number('uuid', whole.casefold()):012x}"
            case "mac":
                place = self._number("mac", whole.casefold())
                return f"02:00:00:{place >> 16 & 255:02x}:{place >> 8 & 255:02x}:{place & 255:02x}"
            case "ipv4" | "ipv6":
                return self._address(whole)
            case "serial":
                number = match["number"]
                return f"{whole[: len(whole) - len(number)]}serial-{self._number('serial', number)}"
            case "hostname":
                return self._name(whole, "host")
            case "mail":
                return f"{self._name(match['user'], 'user')}@{self._name(match['host'], 'host')}"
            case "path":
                return self._path(whole)
            case _:
                return self._name(whole, "name")

    def _name(self, name: str, kind: str) -> str:
        kind, key = self._known.get(name.casefold(), (kind, name.casefold()))
        return f"{kind}-{self._number(kind, key)}"

    def _path(self, path: str) -> str:
        if is_of_system(path):
            return self._terms.sub(lambda match: self._name(match[0], "name"), path)
        return "/".join(part if not part or is_ordinary(part) else self._name(part, "name") for part in path.split("/"))

    def _address(self, text: str) -> str:
        """An address for benchmarks (RFC 2544) or documentation (RFC 3849); addresses of every machine are kept."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return text
        if address.is_loopback or address.is_unspecified or text.startswith("255."):
            return text
        if isinstance(address, ipaddress.IPv6Address):
            if sum(map(bool, text.split(":"))) < 2:  # noqa: PLR2004 - a cast in SQL, such as ::dec
                return text
            return f"2001:db8::{self._number('address', str(address)):x}"
        number = self._number("address", str(address))
        return f"198.18.{number >> 8 & 255}.{number & 255}"

    def _number(self, kind: str, key: str) -> int:
        found = self._stand_ins.setdefault(kind, {})
        return found.setdefault(key, len(found) + 1)


def _compile_terms(terms: Collection[str]) -> re.Pattern[str]:
    """A pattern of known names as whole words, longer ones first; it matches nothing if there are none."""
    names = "|".join(re.escape(term) for term in sorted(terms, key=lambda term: (-len(term), term)))
    return re.compile(rf"(?<![A-Za-z0-9])(?i:{names})(?![A-Za-z0-9])" if names else r"(?!)")


def _compile(terms: re.Pattern[str]) -> re.Pattern[str]:
    """One pattern of everything that is replaced: a group for each kind, known names last."""
    return re.compile(
        "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in (*_PARTS.items(), ("term", terms.pattern)))
    )
