"""This machine as one that pgstrata reboots: processes of one boot end with it, and what tells boots apart is forged."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import brisk
from forged_boots import ForgedBoots

# The first process of the machine outlives the command, as that of a real one does.
_INIT = """folder=$1; shift
"$@" >"$folder/said" 2>&1
echo $? >"$folder/code.new"; mv "$folder/code.new" "$folder/code"
if [ -d /run/systemd/system ]; then
    # systemd ends whatever a unit has left behind, and does what it was told to by systemd-run
    kill -KILL -1
    [ ! -e "$folder/boots/later" ] || sh -c "$(cat "$folder/boots/later")" sh "$(cat "$folder/boots/later-how")"
    rm -f "$folder/boots/later"
fi
exec sleep 600
"""
# Its own units, which lie in the folder from one boot to the next, and the sign that systemd runs.
_SYSTEMD = """set -e
folder=$1; shift
mount -t overlay overlay -o "lowerdir=/run,upperdir=$folder/run,workdir=$folder/work" /run
mount --bind "$folder/units" /etc/systemd/system
exec "$@"
"""
_NAMESPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc")
_SECONDS = 600
_REBOOTS = ("this machine boots", "the host is rebooting")


class OwnMachine:
    """Runs pgstrata in a machine whose boots are forged; `environ` is that of its commands, `folder` theirs.

    With `systemd` it starts units of pgstrata that are enabled.
    """

    def __init__(self, folder, environ, *, systemd=False):
        self.folder, self.environ, self.systemd = folder, environ, systemd
        for name in ("run/systemd/system", "work", "units"):
            (folder / name).mkdir(parents=True)
        self.boots, self._process, self._down = None, None, threading.Event()

    def stop(self):
        """Power off: whatever still runs is ended."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            self._process.wait(60)

    def start(self):
        """Power on."""
        for unit in self.enabled():
            self._begin(read_command((self.folder / "units" / unit).read_text()))
        self._down.set()

    def enabled(self):
        """Names of enabled units."""
        return [path.name.removeprefix("enabled-") for path in (self.folder / "boots").glob("enabled-*")]

    def said(self):
        """What the last command has printed so far."""
        return (self.folder / "said").read_text()

    def begin(self, *arguments):
        """Start a command of pgstrata."""
        self._down.clear()
        self._begin((sys.executable, brisk.__file__, *arguments))

    def _begin(self, command):
        self.stop()
        (self.folder / "code").unlink(missing_ok=True)
        (self.folder / "said").write_text("")
        systemd = ("sh", "-c", _SYSTEMD, "sh", str(self.folder)) if self.systemd else ()
        words = (*_NAMESPACES, *systemd, *self.boots.words()[4:], "sh", "-c", _INIT, "sh", str(self.folder), *command)
        self._process = subprocess.Popen(
            words, cwd=self.folder, env=self.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def pgstrata(self, *arguments):
        """Exit code of a command, and what it printed; a reboot that it has begun is over when this returns."""
        self.begin(*arguments)
        return self.wait()

    def interrupt(self, reached):
        """Ctrl-C as soon as a text has been printed."""
        end = time.monotonic() + _SECONDS
        while reached not in self.said():
            assert time.monotonic() < end, self.said()
            time.sleep(0.05)
        init = subprocess.run(["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True, check=True)
        child = subprocess.run(["pgrep", "-P", init.stdout.strip()], capture_output=True, text=True, check=True)
        os.kill(int(child.stdout.split()[0]), signal.SIGINT)

    def wait(self):
        """Exit code and words of the command that was begun."""
        end = time.monotonic() + _SECONDS
        while not (self.folder / "code").exists():
            assert time.monotonic() < end, self.said()
            time.sleep(0.05)
        code, said = int((self.folder / "code").read_text()), self.said()
        if any(words in said for words in _REBOOTS):
            assert self._down.wait(60)
        else:
            self.stop()
        return code, said


def read_command(unit):
    """The words of ExecStart, in double quotes each, as systemd.service and systemd.unit say."""
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    return [re.sub(r"\\(.)", r"\1", word).replace("%%", "%").replace("$$", "$") for word in words]


@contextmanager
def own_machine(folder, environ, *, systemd=False):
    """A machine with two kernels, in a folder that root alone can enter."""
    (folder / "boots").mkdir()
    machine = OwnMachine(folder, environ, systemd=systemd)
    machine.boots = ForgedBoots(machine, folder / "boots")
    thread = threading.Thread(target=machine.boots.watch, daemon=True)
    thread.start()
    try:
        yield machine
    finally:
        machine.boots.end()
        thread.join(20)
        machine.stop()
