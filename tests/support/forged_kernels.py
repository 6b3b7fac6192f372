"""A repository that is built as Linux is, and a machine that boots what comes of it, without any kernel.

The file `behaviour` of a commit is its kernel: `panic`, `hang`, or a number that stands for its speed. Its Makefile has
the targets of Linux's that pgstrata uses. QEMU is forged: it reads that file and writes a console.
"""

import subprocess
from pathlib import Path

from pgstrata.hosts.local import LocalHost
from pgstrata.ports.host import Completed, CpuTime, ProcessExit

CONFIG = "CONFIG_SMP=y\n"
MAKEFILE = """VERSION = 6.{minor}.0
olddefconfig:
\t@test -s .config && echo CONFIG_OLD=y >> .config
bzImage:
\t@grep -q CONFIG_OLD .config
\t@mkdir -p arch/x86/boot include/config
\t@echo "$(VERSION)$(LOCALVERSION)" > include/config/kernel.release
\t@printf '%s' "kernel/virtio_pci.ko kernel/virtio_blk.ko kernel/virtio_net.ko kernel/ext4.ko" > modules.builtin
\t@cp behaviour arch/x86/boot/bzImage
modules:
"""
BROKEN = "olddefconfig:\n\nbzImage modules:\n\t@echo 'kernel/fork.c:7:2: error: no such thing' >&2; false\n"
WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


class KernelTree:
    """The repository; `hashes` are its commits, the oldest first."""

    def __init__(self, folder):
        self.folder, self.hashes = folder, []
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=master")
        (folder / "drivers").mkdir()
        (folder / "drivers" / "a file").write_text("driver")
        (folder / "Makefile").write_text(MAKEFILE.format(minor=1))

    def git(self, *arguments):
        words = ("git", *WHO, *arguments)
        return subprocess.run(words, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, subject, behaviour="", makefile=""):
        for name, text in (("behaviour", behaviour), ("Makefile", makefile)):
            if text:
                (self.folder / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        self.hashes.append(self.git("rev-parse", "HEAD"))
        return self.hashes[-1]


class Greeted:
    """In the place of `vms.greeting.Greeting`: the sshd of a forged guest answers at once."""

    def __init__(self, port):
        self.port = port

    def comes(self, seconds):
        return True

    def close(self):
        """There is nothing to close."""


class ForgedQemu(LocalHost):
    """This machine, on which QEMU and ssh only seem to run; `booted` are the contents of the kernels."""

    def __init__(self):
        super().__init__()
        self.booted = []

    def spawn(self, command, *, stdout, **_):
        words = command.argv
        kernel = Path(words[words.index("-kernel") + 1]).read_text().strip()
        self.booted.append(kernel)
        if kernel == "panic":
            said = "[    0.9] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n"
            Path(stdout.removesuffix(".qemu")).write_text(f"[    0.1] Linux version 6\n{said}[    0.9] CPU: 0\n")
        return _Running()

    def run(self, command, **more):
        if command.argv[0] == "mke2fs":
            Path(command.argv[-2]).write_text("")
            return Completed(code=0, stdout=b"", stderr=b"")
        if command.argv[0] == "timeout" and "ssh" in command.argv:
            return Completed(code=255 if self.booted[-1] in {"panic", "hang"} else 0, stdout=b"", stderr=b"")
        if "/dev/kvm" in command.argv[-1]:
            return Completed(code=1, stdout=b"", stderr=b"")
        return super().run(command, **more)


class _Running:
    """A process that runs until it is ended."""

    pid = 1

    def __init__(self):
        self._exit = None

    def poll(self):
        return self._exit

    def wait(self, timeout):
        if self._exit is None:
            raise TimeoutError(timeout)
        return self._exit

    def signal(self, _, *, group=False):
        self._exit = ProcessExit(code=0, cpu=CpuTime(user=0.0, system=0.0))
