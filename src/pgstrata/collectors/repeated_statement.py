"""A statement that psql gives to a server again and again, and writes the answers of into a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pgstrata.ports.collector import CaptureSubject, Sampling

PLAIN_STRINGS: Final = "SET standard_conforming_strings = on;\n"
"""What constants in a script need on servers that may read backslashes in them as escapes."""


def render_watch(statement: str, seconds: float, *, begin: str = "") -> str:
    """A script of psql: what is to `begin` with, then the statement, prepared once and given again and again."""
    return f"{begin}PREPARE sample AS\n{statement.rstrip()};\nEXECUTE sample \\watch {seconds:g}\n"


def start_watch(
    subject: CaptureSubject,
    script: str,
    *,
    folder: str,
    name: str,
    conceal: Callable[[bytes], bytes] | None = None,
    prompt: bool = False,
) -> Sampling:
    """A script at work on psql's host, whose answers go into the file `name` in a folder that exists there."""
    process = subject.sql.watch(subject.server.address, script, folder=folder, name=name)
    output = f"{folder}/{name}"
    return Sampling(
        host=subject.sql.host, process=process, output=output, errors=f"{output}.err", conceal=conceal, prompt=prompt
    )
