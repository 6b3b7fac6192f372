"""Inputs that go wrong: texts and documents that Hypothesis damages, and what a case may take of time and memory."""

import math
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

from damage import DAMAGES, damaged
from pgstrata.errors import PgstrataError

SECONDS = 10
MEMORY = 500 << 20
_PAGE = resource.getpagesize()

ODD = [
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 10**30, 0.0, -0.5, 1e308, 5e-324, math.inf, math.nan,
    "", " ", "x", "0", "-1", "9" * 5000, "1e999", "\uff11\uff12", "\0", "\x1b[2J\x1b[8m", "\u202e", "a\nb", "'", "%s",
    "60s", "1h30m", "100000000000000000000h", "3 %", "1GB", "99999999TB", "on", "auto", "16", "same", "..", "/dev/zero",
    "dsn:postgresql://[::1", "dsn:host=h password='a", "dsn:postgresql://u:p@h:99999/d?x=%zz", "prefix:", "ssh:", "b01",
    [], {}, [[]], {"": {}}, {"a": [1]}, ["16", "18"], [1, 1], list(range(600)), "x" * 100_000,
]  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "take", "twice", "rename"]), st.floats(0, 1), st.sampled_from(ODD)),
    min_size=1,
    max_size=3,
)


class TooLongError(AssertionError):
    """A case that took more time of the processor than `SECONDS`."""


@contextmanager
def bounded():
    """Nothing but a PgstrataError may come out of it, and it may take so much time and memory and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    before = signal.signal(signal.SIGPROF, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    except PgstrataError as error:
        str(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def _too_long(_number, _frame):
    raise TooLongError


def texts(samples):
    """Samples as bytes, damaged line by line, and now and then bytes that are nothing."""
    real = st.builds(damaged, st.sampled_from(samples), DAMAGES)
    return st.one_of(real, real, real, st.binary(max_size=300))


def documents(samples):
    """Nested values as `json` reads them, some of which are others, gone, or there twice."""
    return st.builds(changed, st.sampled_from(samples), CHANGES)


def changed(document, changes):
    for kind, place, odd in changes:
        paths = list(_paths(document))
        path = paths[round(place * (len(paths) - 1))]
        document = _change(document, path, kind, odd)
    return document


def _paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))


def _change(value, path, kind, odd):
    if not path:
        return odd if kind == "put" else value
    key, *rest = path
    copy = value.copy()
    if rest:
        copy[key] = _change(value[key], rest, kind, odd)
    elif kind == "put":
        copy[key] = odd
    elif kind == "take":
        del copy[key]
    elif isinstance(copy, list):
        copy.insert(key, value[key])
    else:
        copy[str(odd)[:100]] = copy.pop(key) if kind == "rename" else value[key]
    return copy


def to_toml(document):
    """A document as TOML, its tables inline; what TOML cannot say is left out."""
    items = document.items() if isinstance(document, dict) else ()
    return "".join(f"{_quote(key)} = {_value(item)}\n" for key, item in items if item is not None)


def _value(value):
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _quote(value)
        case dict():
            return (
                "{" + ", ".join(f"{_quote(k)} = {_value(item)}" for k, item in value.items() if item is not None) + "}"
            )
        case list():
            return "[" + ", ".join(_value(item) for item in value if item is not None) + "]"
        case _:
            return repr(value)


def _quote(text):
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in str(text)) + '"'
