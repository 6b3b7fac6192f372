"""CPUs by number, as Linux lists them."""

from pgstrata.errors import ParseError


def parse_cpu_list(text: str) -> frozenset[int]:
    """CPUs of a list as Linux writes it, "0-3,8"; ParseError where it is none."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ParseError(f"not a list of CPUs: {text!r}")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)
