"""Values in files of the Linux kernel: /proc/PID/status, /proc/meminfo, and others with a name in each line. Pure."""

import re

from pgstrata.errors import ParseError


def parse_field(text: str, name: str) -> str:
    """The value of the first line `name: value` or `name value`; empty where there is none."""
    found = re.search(rf"^{re.escape(name)}[ \t]*[: \t][ \t]*(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def parse_meminfo(text: str, name: str) -> int:
    """A size in /proc/meminfo, in bytes; 0 where it is missing or no size."""
    number, _, unit = parse_field(text, name).partition(" ")
    return int(number) * 1024 if unit == "kB" and number.isdecimal() else 0


def parse_allowed_cpus(status: str) -> frozenset[int]:
    """CPUs that a process may use, from its /proc/PID/status; none where that does not say."""
    return parse_cpu_list(parse_field(status, "Cpus_allowed_list"))


def parse_cpu_list(text: str) -> frozenset[int]:
    """CPUs of a list as Linux writes it, "0-3,8"; ParseError where it is none."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ParseError(f"not a list of CPUs: {text!r}")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)
