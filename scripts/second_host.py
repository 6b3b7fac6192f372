"""Runs a command beside a second host that is none: a network of its own on this machine, with an sshd in it.

    sudo .venv/bin/python scripts/second_host.py .venv/bin/pgstrata run examples/short/server-and-client.toml

Within the command ssh knows the host as db1. Both hosts are this machine: what differs is the way between client and
server. Needs root, ssh and sshd. What is stored over there lies in a folder that goes at the end; data would otherwise
be shared with the local host.
"""

# ruff: noqa: INP001  a script, not a package
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_SPEC = importlib.util.spec_from_file_location("sshd", Path(__file__).parents[1] / "tests" / "support" / "sshd.py")
sshd = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(sshd)

_NAME = "db1"


def main(command: list[str]) -> int:
    """The exit code of the command."""
    if impossible := sshd.why_not():
        sys.exit(f"there is no second host: {impossible}")
    if not command:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="pgstrata-db1-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # servers over there run as another user
        with sshd.far_hosts(folder / "net", 1, [sshd.own_folders(folder)]) as (host,):
            config = Path(host.config)
            known = config.read_text()
            config.write_text(known.replace(f"Host {host.destination}", f"Host {host.destination} {_NAME}"))
            environment = {**os.environ, "PGSTRATA_SSH_CONFIG": str(config)}
            return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
