"""Fetching of pinned jars by mvn.

Maven's own configuration decides where from: no repository is named here. What a build is belongs to `inspect`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError, PgstrataError, find_disk_full
from pgstrata.ports.host import Command, Host
from pgstrata.servers.catalogue import Architecture, Jar
from pgstrata.servers.shelf import DISK_REMEDY, DOWNLOAD_TIMEOUT, NETWORK_SIGNS, verify_digest

# Pinned: without a version Maven asks its repositories for the newest one.
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"
_NETWORK: Final = (*NETWORK_SIGNS, "Unknown host", "UnknownHostException", "timed out", "offline mode")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_REPOSITORY_REMEDY: Final = "check which repository or mirror Maven is configured to use (~/.m2/settings.xml)"
_NO_MAVEN: Final = "install it (Debian, Ubuntu: apt-get install maven; Fedora: dnf install maven), or use "
_OTHERS: Final = "14 to 18 from the catalogue, or an installation: prefix:DIR"


def download_jar(here: Host, jar: Jar, architecture: Architecture, folder: Path) -> Path:
    """The jar, in an empty folder.

    Raises:
        DiskFullError: no room.
        HostNotFitError: no mvn, no network, or no jar for this machine.
        PgstrataError: the repository offers something else than what is pinned.
    """
    words = (_COPY, f"-Dartifact={jar.artifact(architecture)}:jar", f"-DoutputDirectory={folder}")
    try:
        # In a folder without a pom.xml: one that lies where the command was given is none of ours.
        command = Command(argv=("mvn", "-B", "-q", *words), folder=str(folder))
        done = here.run(command, timeout=DOWNLOAD_TIMEOUT, check=False)
    except HostNotFitError as error:
        raise HostNotFitError(
            "there is no mvn, which fetches the servers maven:9.6 to maven:18",
            remedy=f"{_NO_MAVEN}{_OTHERS}",
        ) from error
    if done.code != 0:
        raise explain_maven_failure(jar, done.text + done.complaints)
    archive = folder / jar.file(architecture)
    if not archive.is_file():
        raise PgstrataError("mvn ended well but left no jar", where=jar.artifact(architecture))
    verify_digest(archive, jar.digests[architecture], program="mvn", remedy=_REPOSITORY_REMEDY)
    return archive


def explain_maven_failure(jar: Jar, text: str) -> PgstrataError:
    """What a failed `mvn dependency:copy` means, from its output."""
    said = (_COLOUR.sub("", line).removeprefix("[ERROR]").strip() for line in text.splitlines())
    lines = tuple(
        line for line in said if line and not line.startswith(("->", "To see the full", "Re-run", "For more"))
    )
    if find_disk_full(text):
        return DiskFullError("the disk is full", where=jar.level, remedy=DISK_REMEDY)
    if "JAVA_HOME" in text or re.search(r"java: (?:command )?not found", text):
        return HostNotFitError(
            "mvn finds no Java",
            where=jar.level,
            details=lines[:2],
            remedy=f"install one (Debian, Ubuntu: apt-get install default-jre-headless), or use {_OTHERS}",
        )
    if "PKIX path building failed" in text or "SSLHandshakeException" in text:
        return HostNotFitError(
            "Maven does not trust the certificate of its repository",
            where=jar.level,
            details=lines[:1],
            remedy="import the certificate into Java's trust store (keytool -importcert)",
        )
    if any(sign in text for sign in _NETWORK):
        return HostNotFitError(
            "Maven's repository cannot be reached",
            where=jar.level,
            details=lines[:1],
            remedy=f"check the network, or the proxy in ~/.m2/settings.xml; or use {_OTHERS}",
        )
    if "Could not find artifact" in text or "artifact could not be resolved" in text or "from the specified" in text:
        return HostNotFitError(
            "Maven's repository has no such server", where=jar.level, details=lines[:1], remedy=_REPOSITORY_REMEDY
        )
    return PgstrataError("mvn failed", where=jar.level, details=lines[-6:], remedy="see mvn's message above")
