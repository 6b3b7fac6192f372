"""What `bundle` and `unbundle` print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.model.bundle import Bundled, Replaced, Signer, Unbundled
from pgstrata.report.sentences.names import count
from pgstrata.units import render_bytes

_KINDS: Final = {
    "address": "address",
    "host": "name of a host",
    "mac": "hardware address",
    "name": "part of a path or hidden word",
    "serial": "serial number",
    "user": "name of a user",
    "uuid": "UUID",
}
_PLURALS: Final = {
    "address": "addresses",
    "host": "names of hosts",
    "mac": "hardware addresses",
    "name": "parts of paths and hidden words",
    "user": "names of users",
}


def render_bundled(bundled: Bundled) -> str:
    """Lines about a bundle that was written."""
    return _lines(_say_bundled(bundled))


def render_unbundled(unbundled: Unbundled) -> str:
    """Lines about a bundle that was unpacked."""
    return _lines(_say_unbundled(unbundled))


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def _say_bundled(bundled: Bundled) -> Iterator[str]:
    manifest = bundled.manifest
    yield f"bundle: {bundled.path}"
    yield f"{count(manifest.runs, 'run')}, {render_bytes(bundled.size)} ({render_bytes(manifest.size)} unpacked)"
    if bundled.replaced:
        yield from _say_replaced(bundled.replaced)
    yield _say_signer(bundled.signer, "not signed: --sign KEY signs it")
    yield f"SHA-256 of its manifest: {bundled.digest}"


def _say_unbundled(unbundled: Unbundled) -> Iterator[str]:
    manifest = unbundled.manifest
    yield f"study: {unbundled.folder}"
    without = ", names replaced" if manifest.anonymous else ""
    runs = count(manifest.runs, "run")
    yield f"{runs}, written by pgstrata {manifest.version}{without}; every file matches the manifest"
    yield _say_signer(unbundled.signer, "not signed: there is no proof of who bundled it")
    yield f"SHA-256 of its manifest: {unbundled.digest}"


def _say_signer(signer: Signer | None, otherwise: str) -> str:
    if signer is None:
        return otherwise
    if signer.principal:
        return f"signed by {signer.principal} ({signer.key})"
    return f"signed with the {signer.key}; --signer FILE says whose key that is"


def _say_replaced(replaced: Replaced) -> Iterator[str]:
    said = [
        f"{number} {_PLURALS.get(kind, f'{_KINDS[kind]}s') if number > 1 else _KINDS[kind]}"
        for kind, number in replaced.numbers
    ]
    yield f"replaced: {', '.join(said)}" if said else "replaced: nothing, because no names were found"
    if replaced.left_out:
        yield f"left out: {', '.join(replaced.left_out)}"
    if replaced.kept:
        yield f"not replaced, because the words are too ordinary: {', '.join(replaced.kept)} (--hide WORD replaces one)"
    yield "not replaced: question, labels, comments, texts of queries: read them before you publish the bundle"
