"""pgstrata at work as root beside users who attack it: experiments, doctor, restoring, reports, servers, builds."""

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from adversaries import Adversary, Canaries, roots_among
from pgstrata.app.places import find_machine_places

OTHER = "daemon"
SERVERS = "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"
EXPERIMENT = """
question = "Is anything of root's touched?"
blocks = 1
[[environments]]
name = "made"
server = "{server}"
filesystem = "ext4"
storage.size = "100MB"
storage.wal = "memory"
[[environments]]
name = "limited"
server = "{server}"
limits.memory = "2 GB"
sysctl."vm.swappiness" = "10"
[common]
settings.shared_buffers = "32MB"
settings.max_wal_size = "64MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1 s"
warmup = "0 s"
"""
CONFIGURE = """#!/bin/sh
for word; do case $word in --prefix=*) prefix=${word#--prefix=};; esac; done
id -u >>LOG
mkdir -p src && echo "prefix=$prefix" >src/Makefile.global
"""
MAKEFILE = """include src/Makefile.global
all:
\tid -u >>LOG
install:
\tmkdir -p $(DESTDIR)$(prefix)/bin $(DESTDIR)$(prefix)/share && cp configure $(DESTDIR)$(prefix)/bin/postgres
\techo bki >$(DESTDIR)$(prefix)/share/postgres.bki
"""


@dataclass
class Siege:
    """The places of one trial below a folder that every user may enter, and what came of it.

    Args:
        folder: of root's.
        source: a folder with the package of another version, which may do damage: links lead to canaries only, the
            cache is its own, and only canaries count.
    """

    folder: Path
    source: Path | None = None
    outcomes: Counter = field(default_factory=Counter)
    harmed: str = ""
    """The first canary that was harmed, when, and by which command."""

    def __post_init__(self):
        self.canaries = Canaries(self.folder / "canaries")
        self.log = self.folder / "who-ran-it"
        self.theirs = self.folder / "theirs"
        self.environ = {
            **os.environ,
            "PGSTRATA_STATE": f"{self.folder}/state",
            "PGSTRATA_DATA": f"{self.folder}/data",
            "PGSTRATA_RUN": f"{self.folder}/run",
            "PGSTRATA_LOCK": f"{self.folder}/shared/pgstrata.lock",
        }
        self.cache = find_machine_places().cache
        if self.source:
            self.cache = f"{self.folder}/cache"
            self.environ |= {"PYTHONPATH": str(self.source), "PGSTRATA_CACHE": self.cache}

    def set_up(self):
        """Make everything, as users would have it."""
        self.canaries.make()
        self.log.touch()
        self.log.chmod(0o666)
        (self.folder / "shared").mkdir()
        (self.folder / "shared").chmod(0o1777)
        prefix, build = self.theirs / "prefix", self.theirs / "source"
        for folder in (
            prefix / "bin",
            prefix / "lib",
            prefix / "share",
            build / "src/backend/parser",
            build / "contrib/pg_prewarm",
        ):
            folder.mkdir(parents=True)
        (prefix / "bin" / "postgres").write_text(f"#!/bin/sh\nid -u >>{self.log}\n")
        (prefix / "share" / "postgres.bki").write_text("bki")
        (prefix / "share" / "link").symlink_to(self.canaries.folder / "secret")
        (build / "configure").write_text(CONFIGURE.replace("LOG", str(self.log)))
        (build / "Makefile").write_text(MAKEFILE.replace("LOG", str(self.log)))
        (build / "contrib/pg_prewarm/Makefile").write_text("all install:\n\t@true\n")
        (build / "src/backend/parser/gram.c").write_text("/* made by bison */")
        for path in (prefix / "bin" / "postgres", build / "configure"):
            path.chmod(0o755)
        prefix.chmod(0o700)
        (self.theirs / "experiment.toml").write_text(EXPERIMENT.format(server="embedded"))
        (self.theirs / "build.toml").write_text(EXPERIMENT.format(server=f"build:{build}"))
        entry = pwd.getpwnam(OTHER)
        for path in (self.theirs, *self.theirs.rglob("*")):
            os.lchown(path, entry.pw_uid, entry.pw_gid)

    def adversaries(self, seed):
        """Those who attack: the servers' user in its folders, another user in its own, both where all may write."""
        below = tuple(str(self.folder / name) for name in ("data", "run", "shared"))
        memory = "/dev/shm/pgstrata-0"
        own = (str(self.theirs), str(self.folder / "shared"))
        make = partial(Adversary, canaries=self.canaries.folder, log=self.log)
        if self.source:
            make = partial(make, aims=())
        return (
            make(SERVERS, (*below, memory), seed=seed),
            make(SERVERS, below, seed=seed + 2, attentive=True),
            make(OTHER, own, seed=seed + 1),
        )

    def run(self, seconds, *, seed=1, tell=lambda line: None):
        """Attack for so long while commands follow each other; what is wrong, in words."""
        adversaries = self.adversaries(seed)
        for adversary in adversaries:
            adversary.start()
        begun, number, wrong = time.monotonic(), 0, []
        deadline = begun + seconds
        try:
            while time.monotonic() < deadline and not wrong:
                number += 1
                for words in self.commands(number):
                    wrong += self._try(words, adversaries)
                    if not self.harmed and (changed := self.canaries.changed()):
                        taken = time.monotonic() - begun
                        path = changed[0].partition(": ")[0]
                        self.harmed = f"{Path(path).name}, after {taken:.0f} s, by pgstrata {words[0]}"
                    if wrong or time.monotonic() > deadline:
                        break
                tell(f"round {number}: {dict(self.outcomes)}")
        finally:
            for adversary in adversaries:
                adversary.stop()
        return wrong + self._aftermath()

    def commands(self, number):
        """What root gives in one round; the first round has what takes least time."""
        study, report = self.theirs / f"study-{number}", self.theirs / "report.html"
        yield ("servers", "check", f"prefix:{self.theirs}/prefix")
        yield ("doctor",)
        yield ("run", str(self.theirs / "experiment.toml"), "--study", str(study))
        yield ("report", str(study), "--output", str(report))
        yield ("host", "restore")
        yield ("run", str(self.theirs / "build.toml"), "--study", f"{study}-build")
        yield ("reparse", str(study))
        yield ("show", str(study))
        yield ("host", "restore")

    def _try(self, words, adversaries):
        process = subprocess.Popen(
            [sys.executable, "-m", "pgstrata", *words], cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            said, _ = process.communicate()
            return [] if self.source else [f"pgstrata {' '.join(words)} did not end within 240 s: {said[-500:]}"]
        self.outcomes[f"{words[0]} {process.returncode}"] += 1
        changed = [f"after pgstrata {' '.join(words)}: {line}" for line in self.canaries.changed()]
        if self.source:
            return changed
        wrong = [f"pgstrata {' '.join(words)}: {said[-2000:]}"] if "Traceback" in said else []
        wrong += changed
        wrong += [
            f"root's process {pid} among those of an adversary"
            for pid in roots_among([each.pid for each in adversaries])
        ]
        return wrong + self._traps(words)

    def _traps(self, words):
        ran = self.log.read_text().split()
        return [f"pgstrata {' '.join(words)}: root ran a program of theirs"] if "0" in ran else []

    def _aftermath(self):
        """In the quiet everything can be put back; then nothing is left."""
        environ = {**self.environ}
        done = subprocess.run(
            [sys.executable, "-m", "pgstrata", "host", "restore"], env=environ, capture_output=True, text=True
        )
        wrong = [f"restoring: {done.stdout}{done.stderr}"] if done.returncode else []
        wrong += self.left()
        wrong += self.canaries.changed()
        places = [self.folder, Path(self.cache, "servers")]
        wrong += [f"a copy of a secret: {path}" for path in self.canaries.shown(places)]
        return wrong

    def left(self):
        """What is mounted or attached below the folder, in words."""
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        wrong = [f"still mounted: {mount}" for mount in mounts if mount.startswith(f"{self.folder}/")]
        loops = subprocess.run(
            ["losetup", "--list", "--noheadings", "--output", "BACK-FILE"], capture_output=True, text=True
        ).stdout
        return wrong + [
            f"loop device left: {line}" for line in loops.splitlines() if line.startswith(f"{self.folder}/")
        ]

    def clean(self):
        shutil.rmtree(self.folder, ignore_errors=True)
