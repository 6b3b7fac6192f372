"""Other machines for tests: network namespaces on one bridge, each with an sshd of its own; root only.

The namespaces share files, users and processes with this machine, and have nothing but the network for themselves.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PORT = 2222
_STORED = ("CACHE", "STATE", "DATA", "RUN", "LOCK")
_NETWORKS = Path("/run/pgstrata-test-networks.lock")
"""Held while a network is chosen, until its route tells all others that it is taken."""


def why_not():
    """Why there can be no such machines here, or nothing."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    missing = [program for program in ("ip", "nsenter", "ssh", "ssh-keygen") if not shutil.which(program)]
    if not shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin"):
        missing.append("sshd")
    return f"{', '.join(missing)} missing" if missing else ""


class RigImpossibleError(Exception):
    """The kernel does not let us."""


class _Rigs:
    made = 0


@dataclass
class FarHost:
    """A machine: `destination` is what ssh is told, `config` an ssh configuration that knows it."""

    destination: str
    address: str
    namespace: str
    link: str
    config: str
    folder: Path
    sshd: subprocess.Popen | None = None
    before: tuple = ()
    """Words before the command of sshd, by which it gets more of its own than a network."""

    def inside(self, *argv):
        """The command that runs in the machine's network."""
        return ("nsenter", f"--net=/run/netns/{self.namespace}", "--", *argv)

    def cut(self):
        """Take the network away, as a pulled cable does: nobody is told."""
        _ip("link", "set", self.link, "down")

    def mend(self):
        """Give it back; returns once somebody answers, which the kernel has to find out anew."""
        _ip("link", "set", self.link, "up")
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((self.address, PORT), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def path(self):
        """A PATH by which commands that read the user's own ssh configuration read this one instead."""
        folder = Path(self.config).parent / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F "{self.config}" "$@"\n')
        (folder / "ssh").chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    def start(self):
        log = (self.folder / "sshd.log").open("wb")
        program = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")
        self.sshd = subprocess.Popen(
            self.inside(*self.before, program, "-D", "-e", "-f", str(self.folder / "sshd_config")),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        deadline = time.monotonic() + 10
        while b"listening" not in (self.folder / "sshd.log").read_bytes():
            if self.sshd.poll() is not None or time.monotonic() > deadline:
                raise RigImpossibleError((self.folder / "sshd.log").read_text())
            time.sleep(0.02)

    def hang_up(self):
        """End the sshd and its sessions, and nothing else of the machine; `start` begins it again."""
        sessions = Path(f"/proc/{self.sshd.pid}/task/{self.sshd.pid}/children").read_text().split()
        self.sshd.kill()
        self.sshd.wait(10)
        for pid in sessions:
            os.kill(int(pid), signal.SIGKILL)

    def stop(self):
        """End the sshd and whatever else runs in the namespace."""
        if self.sshd is not None:
            self.sshd.terminate()
            self.sshd.wait(10)
            self.sshd = None
        for pid in _ip("netns", "pids", self.namespace, check=False).split():
            subprocess.run(["kill", "-KILL", pid], check=False, capture_output=True)


@contextmanager
def far_hosts(folder, count=1, options=()):
    """`count` machines, named far1, far2 … in their ssh configuration; the coordinator is on the same network.

    `options` are further lines of their sshd_config, or a function that gives those of a number. Rigs of one process can
    be up side by side.
    """
    _Rigs.made += 1
    name = f"pgstrata-far-{os.getpid()}-{_Rigs.made}"  # `leftovers` reads in names who made them
    bridge = f"pg{os.getpid()}-{_Rigs.made}"
    with ExitStack() as stack:
        _privilege_separation()
        network = _make_bridge(stack, bridge)
        config = _client_config(folder, network, count)
        found = []
        for number in range(1, count + 1):
            far = FarHost(
                destination=f"far{number}",
                address=f"{network}.{number}",
                namespace=f"{name}-{number}",
                link=f"{bridge}v{number}",
                config=str(config),
                folder=folder / f"far{number}",
            )
            _attach(stack, far, bridge)
            _server_config(far, folder, options(number) if callable(options) else options)
            stack.callback(far.stop)
            far.start()
            found.append(far)
        keys = "".join(f"[{far.address}]:{PORT} {(far.folder / 'host.pub').read_text()}" for far in found)
        (folder / "known_hosts").write_text(keys)
        yield found


def _make_bridge(stack, bridge):
    """A bridge on a network that nobody else has: the first three numbers of it."""
    with _NETWORKS.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        network = _free_network(_ip("route", "show"))
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge, check=False)
        _ip("address", "add", f"{network}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
    return network


def _free_network(routes):
    # 198.18.0.0/15 is for benchmarks of networks (RFC 2544): nobody else's.
    for network in (f"198.{18 + number // 256}.{number % 256}" for number in range(512)):
        if f"{network}.0/24" not in routes:
            return network
    raise RigImpossibleError("all networks of 198.18.0.0/15 are taken: `ip route` names whose they are")


def _attach(stack, far, bridge):
    _ip("netns", "add", far.namespace)
    stack.callback(_ip, "netns", "del", far.namespace, check=False)
    _ip("link", "add", far.link, "type", "veth", "peer", "name", "eth0", "netns", far.namespace)
    stack.callback(_ip, "link", "del", far.link, check=False)
    _ip("link", "set", far.link, "master", bridge, "up")
    for words in (
        ("link", "set", "lo", "up"),
        ("link", "set", "eth0", "up"),
        ("address", "add", f"{far.address}/24", "dev", "eth0"),
    ):
        _ip("-n", far.namespace, *words)


def _client_config(folder, network, count):
    folder.mkdir(parents=True, exist_ok=True)
    _keygen(folder / "key")
    lines = [
        f"UserKnownHostsFile {folder}/known_hosts",
        "GlobalKnownHostsFile none",
        f"IdentityFile {folder}/key",
        "IdentitiesOnly yes",
        "IdentityAgent none",
        "User root",
        f"Port {PORT}",
    ]
    for number in range(1, count + 1):
        lines += [f"Host far{number}", f"    HostName {network}.{number}"]
    config = folder / "ssh_config"
    config.write_text("\n".join([*lines, ""]))
    return config


def _server_config(far, folder, options):
    far.folder.mkdir()
    _keygen(far.folder / "host")
    (far.folder / "authorized_keys").write_text((folder / "key.pub").read_text())
    (far.folder / "sshd_config").write_text("\n".join([
        *_without_startup(options), f"ListenAddress {far.address}", f"Port {PORT}", f"HostKey {far.folder}/host", "PidFile none",
        f"AuthorizedKeysFile {far.folder}/authorized_keys", "StrictModes no", "UsePAM no", "PermitRootLogin yes",
        "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PrintMotd no", "",
    ]))  # fmt: skip


def own_folders(folder):
    """A line of sshd_config by which pgstrata over there keeps what it stores in `folder`, apart from this machine's."""
    return "SetEnv " + " ".join(f"PGSTRATA_{name}={folder / name.lower()}" for name in _STORED)


def _without_startup(options):
    """Lines of sshd_config in which bash is told that it is not the first shell: it then reads no file of the user's.

    What such a file starts may hold a lock, and is killed where a test kills a session. Only the first SetEnv counts.
    """
    plain = [line for line in options if not line.startswith("SetEnv ")]
    (variables,) = [line for line in options if line.startswith("SetEnv ")] or ["SetEnv"]
    return [*plain, f"{variables} SHLVL=9"]


def _keygen(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True)


def _privilege_separation():
    """The empty folder that every sshd of Debian wants to see; it stays, because others may be using it."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def _ip(*words, check=True):
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if check and done.returncode:
        raise RigImpossibleError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
