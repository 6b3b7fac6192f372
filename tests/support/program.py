"""The command line as a user calls it, with places of its own; and the smallest experiment."""

import os
import subprocess
import sys

SMALL = """
question = "?"
blocks = {blocks}
controls = ["same"]
[common]
server = "embedded"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""


def pgstrata(place, *arguments, environ=None, **more):
    """The program, ended; `more` is for `subprocess.run`."""
    names = {f"PGSTRATA_{name}": str(place / name.lower()) for name in ("CACHE", "STATE", "DATA")}
    words = [sys.executable, "-m", "pgstrata", *map(str, arguments)]
    given = {"capture_output": True, "text": True, "timeout": 60, **more}
    return subprocess.run(words, cwd=place, env=os.environ | names | (environ or {}), **given)
