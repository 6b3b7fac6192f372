"""An experiment on other machines that are network namespaces: this machine's side keeps what it stores in a folder."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

import brisk
import sshd
from pgstrata.app import site
from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.conduct import ceiling
from pgstrata.store.repository import StudyFolder
from working_folder import working_folder

FILE = "experiment.toml"
_STORED = ("STATE", "DATA", "LOCK")


def _own(folder, far):
    """Variables by which pgstrata stores in `folder` and knows the machines."""
    stored = {f"PGSTRATA_{name}": str(folder / "here" / name.lower()) for name in _STORED}
    return {**stored, site.SSH_CONFIG: far.config}


class FarPlace:
    """A folder with an experiment, and one of the machines that it names; pgstrata runs as processes of its own."""

    def __init__(self, folder, far, text):
        self.folder, self.far = folder, far
        self.environ = {**os.environ, **_own(folder, far)}
        (folder / "here").mkdir()
        (folder / FILE).write_text(text)

    def _words(self, *arguments):
        return [sys.executable, brisk.__file__, *arguments]

    def pgstrata(self, *arguments):
        words = self._words(*arguments)
        return subprocess.run(words, cwd=self.folder, env=self.environ, timeout=180, capture_output=True, text=True)

    def start(self, study, **streams):
        """The experiment with events on its standard output."""
        words = self._words("run", FILE, "--study", study, "--events")
        return subprocess.Popen(words, cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, text=True, **streams)

    def kill_at(self, study, reached):
        """Start the experiment, and end it with -9 at the first event of which `reached` says so."""
        with self.start(study) as process:
            for line in process.stdout:
                if reached(json.loads(line)):
                    break
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)


@contextmanager
def far_machines(count):
    """A folder, and machines with folders of their own below it: there1, there2 …"""
    with working_folder("pgstrata-far-") as folder:

        def own(number):
            there = folder / f"there{number}"
            there.mkdir()
            return [sshd.own_folders(there)]

        with sshd.far_hosts(folder / "net", count, own) as found:
            yield folder, found


@contextmanager
def far_study(folder, far, text, events, patches=()):
    """The experiment made in this process: the study's folder, its outcome and `events`.

    `patches` are attributes that have another value meanwhile: module, name and value of each.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _own(folder, far).items():
            patch.setenv(name, value)
        (folder / "here").mkdir(exist_ok=True)
        patch.setattr(ceiling, "_SECONDS", 1.0)
        for each in patches:
            patch.setattr(*each)
        file = folder / FILE
        file.write_text(text)
        outcome = run_experiment(load_plan(file), StudyFolder(folder / "study"), events)
        yield folder / "study", outcome, events
