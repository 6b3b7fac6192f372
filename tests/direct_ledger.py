"""A ledger that makes changes right away and undoes them, without writing anything down: for tests of single layers."""

import subprocess

from pgstrata.errors import HostNotFitError, LevelNotTakenError


class DirectLedger:
    def __init__(self):
        self.done = []

    def change(self, change):
        before = run(change.read)
        self.done.append((change, before))
        try:
            run(change.do)
        except subprocess.CalledProcessError as error:
            self.undo_to(len(self.done) - 1)
            raise LevelNotTakenError(f"{change.what} cannot be set to {change.value}: {error.stderr}") from error
        return run(change.read)

    def mark(self):
        return len(self.done)

    def undo_to(self, mark):
        failures = []
        while len(self.done) > mark:
            change, before = self.done.pop()
            try:
                run(change.undo.with_argument(before))
            except subprocess.CalledProcessError as error:
                failures.append(f"{change.what}: {error.stderr}")
        if failures:
            raise HostNotFitError("; ".join(failures))


def run(script):
    """What a script prints, stripped."""
    return subprocess.run(script.argv, check=True, capture_output=True, text=True, timeout=30).stdout.strip()
