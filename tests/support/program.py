"""The command line as a user calls it, with places of its own; and the smallest experiment."""

import io
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from unittest.mock import patch

from pgstrata.cli.program import entry

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
    """The program, ended. It runs in this process, which saves its start; with `more` for `subprocess.run` it is real."""
    names = {f"PGSTRATA_{name}": str(place / name.lower()) for name in ("CACHE", "STATE", "DATA")} | (environ or {})
    if more:
        words = [sys.executable, "-m", "pgstrata", *map(str, arguments)]
        given = {"capture_output": True, "text": True, "timeout": 60, **more}
        return subprocess.run(words, cwd=place, env=os.environ | names, **given)
    return run_here(place, os.environ | names, *arguments)


def run_here(place, environ, *arguments):
    """The program, ended, in this process, with this environment and no other."""
    words = list(map(str, arguments))
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with ExitStack() as stack:
        for state in (
            chdir(place),
            patch.dict(os.environ, environ, clear=True),
            patch.object(sys, "argv", ["pgstrata", *words]),
            redirect_stdout(out),
            redirect_stderr(err),
            _own_signals(),
        ):
            stack.enter_context(state)
        try:
            entry()
        except SystemExit as done:
            code = done.code or 0
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return subprocess.CompletedProcess(words, code, *said)


@contextmanager
def _own_signals():
    """The program takes signals to itself, and leaves them ignored when it ends."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
