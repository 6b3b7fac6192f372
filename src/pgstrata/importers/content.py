"""Decodes the bytes of an imported file, or names its format if it is not text."""

from __future__ import annotations

import codecs
from typing import Final

_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD: Final = 8192
_KINDS: Final = (
    (b"\x1f\x8b", "it is compressed (gzip): unpack it first"),
    (b"PK\x03\x04", "it is an archive (zip) or a spreadsheet: unpack it, or export it as CSV"),
    (b"\xfd7zXZ\x00", "it is compressed (xz): unpack it first"),
    (b"\x28\xb5\x2f\xfd", "it is compressed (zstd): unpack it first"),
    (b"BZh", "it is compressed (bzip2): unpack it first"),
    (b"SQLite format 3\x00", "it is a database (SQLite): export its results as text, CSV or JSON"),
    (b"PGDMP", "it is a custom dump of pg_dump: write it with --format=plain, or convert it by pg_restore -f"),
)


def describe_binary(content: bytes) -> str:
    """The format of content that is not text, and what to do about it; empty if it is text."""
    kind = next((what for start, what in _KINDS if content.startswith(start)), "")
    if kind or content.startswith(_WIDE):
        return kind
    return "it is not text" if b"\0" in content[:_HEAD] else ""


def decode_text(content: bytes) -> str:
    """The text without its byte order mark; UTF-8, or UTF-16 as PowerShell writes it."""
    encoding = "utf-16" if content.startswith(_WIDE) else "utf-8"
    return content.decode(encoding, "replace").removeprefix("\ufeff")
