"""A machine with systemd and two kernels reboots itself through a whole study: `make soak ARGS=own-reboots`.

It is a Debian in QEMU, emulated, because /dev/kvm may open where it runs no guest. pgstrata runs in it as on anybody's
machine.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forged_boots import KERNELS
from pgstrata.app.places import find_machine_places

_TOOLS = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "ssh", "ssh-keygen")
# The guest has the Python of its distribution and the packages of this one.
_SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}
_MISSING = [tool for tool in _TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.soak("own-reboots"),
    pytest.mark.root,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(_MISSING), reason=f"missing: {', '.join(_MISSING)}"),
    pytest.mark.skipif(sys.version_info[:2] not in _SUITES, reason="no Debian has this version of Python"),
]
_PACKAGES = (
    "systemd-sysv", "udev", "python3", "openssh-server", "kexec-tools", "procps", "util-linux", "libxml2", "libssl3",
    "libzstd1", "liblz4-1", "libgssapi-krb5-2", "libreadline8", "tzdata", "initramfs-tools", "zstd",
    "linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64",
)  # fmt: skip
_HOME, _OTHER = "6.12", "6.1."
# Slower than elsewhere: the CPU is emulated.
_EXPERIMENT = 'question = "Does this machine come back from each boot?"\nblocks = 1\ncontrols = ["reboot"]\n' + (
    KERNELS.replace("rate = 50", "rate = 20").replace('"1s"', '"5s"').replace('"0s"', '"1s"')
)
_NETWORK = "[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n"
_VENV = "home = /usr/bin\ninclude-system-site-packages = false\nversion = {}.{}\n"
_RUN = "cd /srv/experiment && /opt/venv/bin/python -m pgstrata"
_KERNELS = """
import glob, json
headers = [json.load(open(path)) for path in glob.glob("/srv/experiment/study/evidence/**/run.json", recursive=True)]
print(json.dumps({each["environment"]: each["facts"]["kernel"] for each in headers}))
"""
_PORT = 2299
_SECONDS = 2400


def make_root(folder):
    """A root file system with systemd, two kernels, pgstrata and the servers that are in this machine's cache."""
    suite = _SUITES[sys.version_info[:2]]
    tree = folder / "tree"
    words = ("--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(_PACKAGES)}", suite, str(tree))
    subprocess.run(("mmdebstrap", *words), check=True)
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")), check=True)
    (tree / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(folder / "key.pub", tree / "root/.ssh/authorized_keys")
    (tree / "etc/fstab").write_text("/dev/vda / ext4 rw,noatime 0 1\n")
    (tree / "etc/systemd/network/10.network").write_text(_NETWORK)
    wants = tree / "etc/systemd/system/multi-user.target.wants/systemd-networkd.service"
    wants.parent.mkdir(exist_ok=True)
    wants.unlink(missing_ok=True)
    wants.symlink_to("/lib/systemd/system/systemd-networkd.service")
    packages = Path(f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages")
    shutil.copytree(Path(sys.prefix) / packages, tree / "opt/venv" / packages, symlinks=True)
    shutil.copytree(Path(__file__).parents[2] / "src", tree / "opt/pgstrata/src")
    (tree / "opt/venv" / packages / "_editable_impl_pgstrata.pth").write_text("/opt/pgstrata/src\n")
    (tree / "opt/venv/pyvenv.cfg").write_text(_VENV.format(*sys.version_info[:2]))
    (tree / "opt/venv/bin").mkdir()
    (tree / "opt/venv/bin/python").symlink_to("/usr/bin/python3")
    cache = Path(find_machine_places().cache)
    shutil.copytree(cache / "servers", tree / "var/cache/pgstrata/servers", symlinks=True)
    (tree / "srv/experiment").mkdir()
    (tree / "srv/experiment/experiment.toml").write_text(_EXPERIMENT)
    for name in ("vmlinuz", "initrd.img"):
        (kernel,) = (tree / "boot").glob(f"{name}-{_HOME}*")
        shutil.copy(kernel, folder / name)
    with (folder / "root.img").open("wb") as image:
        image.truncate(5 << 30)
    subprocess.run(("mke2fs", "-q", "-t", "ext4", "-d", str(tree), "-F", str(folder / "root.img")), check=True)


class Guest:
    """The machine; it is switched off at the end."""

    def __init__(self, folder):
        self.folder = folder
        self._process = subprocess.Popen(
            ("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "3G",
             "-nodefaults", "-display", "none", "-chardev", f"file,id=c,path={folder}/console", "-serial", "chardev:c",
             "-kernel", f"{folder}/vmlinuz", "-initrd", f"{folder}/initrd.img",
             "-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0",
             "-drive", f"file={folder}/root.img,if=virtio,format=raw",
             "-netdev", f"user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{_PORT}-10.0.2.15:22",
             "-device", "virtio-net-pci,netdev=n,romfile=", "-device", "virtio-rng-pci"),
        )  # fmt: skip

    def say(self, text, *, check=True):
        """What a command says over there; nothing while it cannot be reached."""
        known = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=20")
        words = ("ssh", "-q", "-p", str(_PORT), "-i", f"{self.folder}/key", *known, "root@127.0.0.1", text)
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout if done.returncode == 0 else ""

    def wait_for(self, text, what):
        """Until a command over there says something."""
        end = time.monotonic() + _SECONDS
        while not (said := self.say(text, check=False)):
            assert time.monotonic() < end, f"{what}: {(self.folder / 'console').read_text(errors='replace')[-3000:]}"
            time.sleep(5)
        return said

    def off(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(60)


@pytest.fixture
def guest(tmp_path_factory):
    folder, machine = tmp_path_factory.mktemp("own", numbered=True), None
    try:
        make_root(folder)
        machine = Guest(folder)
        yield machine
    finally:
        if machine is not None:
            machine.off()
        shutil.rmtree(folder)


def test_a_machine_reboots_itself_through_a_study_and_is_as_it_was(guest):
    guest.wait_for("uname -r", "the first boot")
    said = guest.say(f"{_RUN} run experiment.toml --study study --resume-after-boot")
    assert "it goes on by itself then" in said
    guest.wait_for("test ! -e /etc/systemd/system/pgstrata-resume-*.service && uname -r", "the end of the study")
    kernels = json.loads(guest.say(f"python3 -c '{_KERNELS}'"))
    assert len(kernels) == 3
    for name, release in kernels.items():
        assert release.startswith(_OTHER if "6.1" in name and "6.12" not in name else _HOME), kernels
    assert guest.say("uname -r").startswith(_HOME)
    guest.say(f"{_RUN} host restore")
    assert "nothing is changed" in guest.say(f"{_RUN} host status")
