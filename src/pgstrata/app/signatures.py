"""Signatures of bundles by the user's own SSH keys, made and checked by ssh-keygen (its manual, -Y)."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pgstrata.errors import BundleError, PgstrataError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.model import sizes
from pgstrata.model.bundle import NAMESPACE, Signer
from pgstrata.ports.host import Command, Completed
from pgstrata.store.bundles.manifest import ALTERED
from pgstrata.system import files, reading
from pgstrata.system.ways import find_owner

_GOOD: Final = re.compile(r"Good \S+ signature (?:for .* )?with (?P<key>\S+ key \S+)")
_MINUTE: Final = 60.0


def sign(key: Path, sealed: bytes) -> bytes:
    """The signature of a manifest, by a private key, or by the user's agent if `key` is a public key.

    As root, a key in another user's folder is used as that user.

    Raises:
        UsageError: there is no such key, or it cannot be used without asking for a passphrase.
    """
    path = key.expanduser().absolute()
    if not path.is_file():
        raise UsageError("there is no such key", where=str(key), remedy="name one, such as --sign ~/.ssh/id_ed25519")
    owner = find_owner(path, making=False)
    host = LocalHost(user=owner.name if owner else None)
    done = _keygen(host, "sign", "-f", str(path), "-n", NAMESPACE, stdin=sealed)
    if done.code or not done.stdout:
        raise UsageError(
            "the bundle could not be signed with this key",
            where=str(key),
            details=done.last_words(),
            remedy="if the key has a passphrase, load it into your agent (ssh-add) and name its public key (.pub)",
        )
    return done.stdout


def identify_signer(signature: bytes, sealed: bytes, signers: Path | None, *, where: str) -> Signer | None:
    """The signer of a manifest; None if it is not signed.

    Args:
        signature: the signature of the bundle, empty if there is none.
        sealed: the bytes of the manifest.
        signers: file of allowed signers in ssh's format; None accepts any key.
        where: the bundle, for messages.

    Raises:
        BundleError: the signature does not match the manifest, is by nobody in `signers`, or is missing although
            `signers` was given.
        UsageError: the file of allowed signers cannot be read.
    """
    if not signature:
        if signers is not None:
            remedy = "ask its sender for a signed one, or leave --signer out"
            raise BundleError("the bundle is not signed", where=where, remedy=remedy)
        return None
    with TemporaryDirectory(prefix="pgstrata-") as place:
        signed = Path(place, "signature")
        files.write_new(signed, signature, mode=0o600)
        if signers is None:
            done = _keygen(LocalHost(), "check-novalidate", "-n", NAMESPACE, "-s", str(signed), stdin=sealed)
            return Signer(key=_require_good(done, where))
        allowed = Path(place, "allowed")
        files.write_new(allowed, _read_signers(signers), mode=0o600)
        found = _keygen(LocalHost(), "find-principals", "-s", str(signed), "-f", str(allowed), stdin=b"")
        principal = found.text.split("\n", 1)[0].strip()
        if found.code or not principal:
            raise BundleError(
                f"the bundle is not signed by anybody in {signers}",
                where=where,
                details=found.last_words(),
                remedy="if you trust the signer, add the key to that file (ssh-keygen(1), ALLOWED SIGNERS); or leave "
                "--signer out",
            )
        words = ("-f", str(allowed), "-I", principal, "-n", NAMESPACE, "-s", str(signed))
        return Signer(
            key=_require_good(_keygen(LocalHost(), "verify", *words, stdin=sealed), where), principal=principal
        )


def _require_good(done: Completed, where: str) -> str:
    good = _GOOD.search(done.text)
    if done.code or good is None:
        raise BundleError(
            "the signature does not match this bundle", where=where, details=done.last_words(), remedy=ALTERED
        )
    return good["key"]


def _read_signers(path: Path) -> bytes:
    try:
        return reading.read_regular(path, most=sizes.SCRIPT)
    except OSError as error:
        raise UsageError(
            f"the file of allowed signers cannot be read: {error.strerror}",
            where=str(path),
            remedy="name a file with lines such as: alice@example.com ssh-ed25519 AAAA…",
        ) from None


def _keygen(host: LocalHost, what: str, *words: str, stdin: bytes) -> Completed:
    command = Command(argv=("ssh-keygen", "-Y", what, *words), stdin=stdin)
    try:
        return host.run(command, timeout=_MINUTE, check=False)
    except PgstrataError as error:
        error.remedy = error.remedy or "install OpenSSH 8.1 or newer (openssh-client)"
        raise
