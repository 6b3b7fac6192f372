"""Other hosts for benchmarks: the network namespaces of the tests, each with an sshd of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from support import load_support

from pgstrata.app.site import SSH_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRig:
    """One other host, `far` as `tests/support/sshd.py` makes it, and a folder for what a benchmark stores."""

    far: Any
    work: Path


@contextmanager
def far_rig() -> Iterator[FarRig | None]:
    """One other host, which keeps its things apart, as this one does meanwhile; None where there can be none.

    The reason is printed then.
    """
    sshd = load_support("sshd")
    if reason := sshd.why_not():
        print(f"    no figures: {reason}")
        yield None
        return
    with storing_apart() as work:
        there = work / "there"
        there.mkdir()
        with (
            sshd.far_hosts(work / "rig", 1, [sshd.own_folders(there)]) as (far,),
            patch.dict(os.environ, {SSH_CONFIG: far.config}),
        ):
            yield FarRig(far=far, work=work)


@contextmanager
def storing_apart() -> Iterator[Path]:
    """A folder in memory; in one below it pgstrata stores meanwhile what it would otherwise keep."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    work = Path(tempfile.mkdtemp(prefix="pgstrata-bench-", dir=memory))
    try:
        work.chmod(0o755)
        (work / "here").mkdir()
        with patch.dict(os.environ, _stored(work / "here")):
            yield work
    finally:
        shutil.rmtree(work)


def _stored(folder: Path) -> dict[str, str]:
    """Where pgstrata stores what it would otherwise keep."""
    return {f"PGSTRATA_{name}": str(folder / name.lower()) for name in ("STATE", "DATA", "LOCK")}
