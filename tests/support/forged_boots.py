"""A far host that can be booted into other kernels, without any: what tells a boot from another is forged.

Its sshd runs in a mount namespace of its own, in which `uname`, the boot id, the command line, /boot and the programs
that reboot a machine are files of the test. A watcher takes the place of firmware and boot loader: it ends everything
that runs over there, forges the next boot, and starts sshd again. Memory, processes and files are this machine's.
"""

import shutil
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

OWN, OLD = "6.12.48+deb13-amd64", "6.1.0-44-amd64"
KERNELS = """
[factors]
kernel = ["6.12", "6.1"]
[common]
settings.shared_buffers = "64MB"
settings.max_wal_size = "64MB"
settings.effective_cache_size = "256MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
rate = 50
run = "1s"
warmup = "0s"
"""
"""What an experiment on both kernels is like; what comes before is its own."""
_SECONDS_DOWN = 0.3
_GRUB = """
menuentry 'Debian' $menuentry_id_option 'simple' {{
	linux /boot/vmlinuz-{own} root=/dev/vda ro quiet
}}
submenu 'Advanced options' $menuentry_id_option 'advanced' {{
	menuentry 'own' $menuentry_id_option 'own' {{
		linux /boot/vmlinuz-{own} root=/dev/vda ro quiet
	}}
	menuentry 'old' $menuentry_id_option 'old' {{
		linux /boot/vmlinuz-{old} root=/dev/vda ro quiet
	}}
}}
"""
_PROGRAMS = {
    "grub-reboot": 'printf %s "$1" >{folder}/next',
    "grub-editenv": 'if [ "$1" = list ]; then printf "next_entry=%s\\n" "$(cat {folder}/next)"; else : >{folder}/next; fi',
    "kexec": """case $1 in
    -l) printf '%s\\n%s\\n' "$2" "$3" >{folder}/loaded; for word; do case $word in --command-line=*)
        printf '%s\\n%s\\n' "$2" "${{word#*=}}" >{folder}/loaded ;; esac; done ;;
    -e) touch {folder}/jump; touch {folder}/request ;;
    -u) rm -f {folder}/loaded ;;
esac""",
    # whatever the folder of the test lies on; everything else is asked of the real one
    "findmnt": """case "$*" in
    *FSTYPE,SOURCE*) echo ext4 /dev/vda1 ;;
    *) exec /usr/bin/findmnt "$@" ;;
esac""",
    "reboot": "rm -f {folder}/jump; touch {folder}/request",
    # asked only where systemd is found to run, and carried out by the first process of the machine
    "systemd-run": """while [ "${{1#-}}" != "$1" ]; do shift; done
shift 2
printf %s "$1" >{folder}/later; printf %s "$3" >{folder}/later-how""",
    "systemctl": """verb=$1; for unit; do :; done
case $verb in
    reboot) rm -f {folder}/jump; touch {folder}/request ;;
    kexec) touch {folder}/jump; touch {folder}/request ;;
    enable) touch {folder}/enabled-"$unit" ;;
    disable) rm -f {folder}/enabled-"$unit" ;;
    is-enabled) [ -e {folder}/enabled-"$unit" ] ;;
esac""",
}
_UNAME = """#!/bin/sh
if [ "$*" = -r ]; then cat {folder}/osrelease; else exec {folder}/uname.real "$@"; fi
"""
# The programs over there stand before those of this machine, in the only folders that a script as root looks into.
_ENTER = """set -e
mount -t overlay overlay -o "lowerdir=$1/sbin:/usr/sbin" /usr/sbin
mount --bind "$1/uname" /usr/bin/uname
mount --bind "$1/boot" /boot
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
mount --bind "$1/osrelease" /proc/sys/kernel/osrelease
mount --bind "$1/cmdline" /proc/cmdline
shift
exec "$@"
"""


@dataclass
class ForgedBoots:
    """The boots of a far host; `booted` are the kernels that it has run, `dead` those that never come up."""

    far: object
    folder: Path

    def __post_init__(self):
        self.booted, self.dead = [], set()
        self._ended = threading.Event()
        for name in ("sbin", "boot/grub"):
            (self.folder / name).mkdir(parents=True)
        for name, text in _PROGRAMS.items():
            self._program(self.folder / "sbin" / name, f"#!/bin/sh\n{text.format(folder=self.folder)}\n")
        shutil.copy("/usr/bin/uname", self.folder / "uname.real")
        self._program(self.folder / "uname", _UNAME.format(folder=self.folder))
        for release in (OWN, OLD):
            (self.folder / "boot" / f"vmlinuz-{release}").write_text("kernel")
            (self.folder / "boot" / f"initrd.img-{release}").write_text("initrd")
        (self.folder / "boot/grub/grub.cfg").write_text(_GRUB.format(own=OWN, old=OLD))
        (self.folder / "next").write_text("")
        self._forge(OWN, "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda ro quiet")

    @staticmethod
    def _program(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def _forge(self, release, line):
        # in place: what is mounted is the file, not its name
        for name, text in (("osrelease", release), ("cmdline", line), ("boot_id", str(uuid.uuid4()))):
            (self.folder / name).write_text(f"{text}\n")
        self.booted.append(" ".join((release, *(word for word in line.split() if word.startswith("mitigations")))))

    def words(self):
        """Put before the command of sshd."""
        return ("unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER, "sh", str(self.folder))

    def watch(self):
        """Until `end`: reboot whenever somebody over there asks for it."""
        while not self._ended.wait(0.05):
            if (self.folder / "request").exists():
                self._boot()

    def end(self):
        self._ended.set()

    def _boot(self):
        self.far.stop()
        (self.folder / "request").unlink()
        time.sleep(_SECONDS_DOWN)
        release, line = OWN, "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda ro quiet"
        loaded, entry = self.folder / "loaded", (self.folder / "next").read_text()
        if (self.folder / "jump").exists():
            image, line = loaded.read_text().splitlines()
            release = image.rpartition("vmlinuz-")[2]
        elif entry == "advanced>old":
            release = OLD
        for name in ("jump", "loaded"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "next").write_text("")
        if release in self.dead:
            release, line = OWN, "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda ro quiet"
        self._forge(release, line)
        self.far.start()


@contextmanager
def forged_boots(far, folder):
    """A far host with boots of its own, in a folder that root alone can enter.

    Where the kernel of this machine lacks the file that says whether kexec is allowed, only GRUB can be tried.
    """
    folder.mkdir(parents=True)
    boots = ForgedBoots(far, folder)
    far.stop()
    far.before = boots.words()
    far.start()
    thread = threading.Thread(target=boots.watch, daemon=True)
    thread.start()
    try:
        yield boots
    finally:
        boots.end()
        thread.join(20)
