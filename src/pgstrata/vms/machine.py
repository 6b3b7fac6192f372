"""One virtual machine of a study: booted as asked, reached over ssh, stopped.

Its data disk is kept from boot to boot; its root file system starts as built at each boot.
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final

from pgstrata.errors import BootFailedError, HostFileError, HostNotFitError
from pgstrata.model import sizes
from pgstrata.model.boot import Boot
from pgstrata.model.server import TcpRoute
from pgstrata.ports.host import Clock, Command, Host, Process, StopSignal, observe_boot
from pgstrata.servers.places import Places
from pgstrata.system import files, reading
from pgstrata.units import render_bytes
from pgstrata.vms.greeting import Greeting
from pgstrata.vms.image import GuestKernel, Image, find_image
from pgstrata.vms.kernel_builds import find_built
from pgstrata.vms.kernels import choose_kernel, require_new_enough
from pgstrata.vms.qemu import ADDRESS, GATEWAY, PROVED, Acceleration, Files, compose, find_panic, last_lines

_PATIENCE: Final = 240.0
"""Seconds within which the sshd of a guest has to answer; emulated ones took 14 to 20 on an idle machine."""
DATA_BYTES: Final = 16 * 1024**3
"""The size of a data disk; its file is sparse and takes only the space that was written to."""
SERVER_PORTS: Final = 64
"""The number of servers that can listen at the same time: those of all environments of a visit in slices."""
_PROOF_PATIENCE: Final = 20.0
_GOING: Final = 30.0
_LOOK: Final = 0.5
_PAUSE: Final = 0.25


class VirtualMachine:
    """A machine of one image, stopped at first.

    Args:
        name: name of the image.
        places: the folders of this machine.
        here: acts as the user of pgstrata.
        host: acts as the user that servers and QEMU run as.
        clock: measures timeouts.
        data: the path of its data disk, in a folder of that user; made at the first boot.
        tell: is called with what takes a while.

    `way` is how clients on this machine reach servers in the guest, `boot` is its last boot, and `boots` the number of
    boots.
    """

    def __init__(
        self, name: str, *, places: Places, here: Host, host: Host, clock: Clock, data: str, tell: Callable[[str], None]
    ) -> None:
        self.image: Image = find_image(places.cache, name)
        self.destination = f"pgstrata-vm-{name}"
        self.console = f"{data}.console"
        self._places, self._here, self._host, self._clock, self._data = places, here, host, clock, data
        key = hashlib.sha256(data.encode()).hexdigest()[:12]
        self._control = Path(places.cache, "vms", f".machine-{key}")
        self._tell = tell
        self._process: Process | None = None
        self.way = TcpRoute()
        self.boot = Boot()
        self.boots = 0

    @property
    def up(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def ssh_config(self) -> str:
        """The path of an ssh configuration with port, key and host key of the machine; it exists while it runs."""
        return str(self._control / "ssh_config")

    def check(self, boot: Boot) -> None:
        """HostNotFitError if a boot is not possible: no such kernel or too old, too little memory, or not by QEMU."""
        kernel = self._kernel(boot)
        require_new_enough(kernel.release, self.image.oldest, where=f"image {self.image.name}")
        self._require_memory(boot)
        compose(boot, self._files(kernel, port=1), Acceleration.EMULATION)

    def _require_memory(self, boot: Boot) -> None:
        there = re.search(r"^MemTotal:\s+(\d+) kB", self._here.read("/proc/meminfo").decode(), re.MULTILINE)
        if there and boot.memory > int(there[1]) * 1024:
            raise HostNotFitError(
                f"the virtual machine {self.image.name} is to have {render_bytes(boot.memory)} of memory, but this "
                f"machine has only {render_bytes(int(there[1]) * 1024)}",
                where="vm.memory",
                remedy="give it less memory",
            )

    def start(self, boot: Boot) -> None:
        """Boot it and wait until its sshd answers; a running machine is stopped first.

        Raises:
            HostNotFitError: as `check`.
            BootFailedError: it panicked, QEMU ended, or it could not be reached in time.
        """
        self.stop()
        self.check(boot)
        kernel = self._kernel(boot)
        self._make_data()
        acceleration = self.acceleration()
        port, *others = _free_ports(1 + SERVER_PORTS)
        found = self._files(kernel, port=port, ports=tuple(others))
        self.way = TcpRoute(server="127.0.0.1", clients=(GATEWAY,), listen=ADDRESS, ports=found.ports)
        self._write_config(found.port)
        self._tell(f"booting the virtual machine {self.image.name}: {kernel.release} ({acceleration})")
        self.boot = boot
        self._begin(compose(boot, found, acceleration))
        try:
            self._await(found.port)
        except BaseException:
            self.stop(politely=False)
            raise
        self.boots += 1

    def stop(self, *, politely: bool = True) -> None:
        """Shut it down, or end QEMU if that fails; nothing happens if it does not run."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        if politely:
            self._ssh("sync; poweroff", timeout=_GOING)
            if _ended(process, _GOING):
                return
        process.signal(StopSignal.TERM)
        if not _ended(process, _GOING):
            process.signal(StopSignal.KILL)
            _ended(process, _GOING)

    def acceleration(self) -> Acceleration:
        """How guests run here: by hardware only if a test guest has booted that way; kept until the next reboot."""
        remembered = Path(self._places.state, "vms-acceleration")
        boot_id = observe_boot(self._here)
        words: list[str] = []
        with suppress(OSError):
            words = _read_text(remembered).split()
        for known in Acceleration:
            if words == [boot_id, self._host.user, known.value]:
                return known
        found = Acceleration.KVM if self._prove() else Acceleration.EMULATION
        files.write_atomically(remembered, f"{boot_id} {self._host.user} {found}\n".encode())
        return found

    def _prove(self) -> bool:
        if self._host.run(Command(argv=("sh", "-c", "[ -w /dev/kvm ]")), check=False).code:
            return False
        self._tell("testing whether hardware virtualisation works: booting a guest with it")
        kernel = self.image.kernel(self.image.kernels[0])
        proof = Files(
            kernel=str(kernel.folder / "vmlinuz"),
            initrd=str(kernel.folder / "initrd.img"),
            console=f"{self._data}.proof",
        )
        self._begin(compose(Boot(memory=1 << 29, cpus=1), proof, Acceleration.KVM))
        process, self._process = self._process, None
        assert process is not None
        if not _ended(process, _PROOF_PATIENCE):
            process.signal(StopSignal.KILL)
            _ended(process, _GOING)
        return PROVED in self._read(proof.console)

    def _begin(self, command: tuple[str, ...]) -> None:
        for path in (self.console, f"{self.console}.qemu"):
            self._host.remove_tree(path)
        log = f"{self.console}.qemu"
        self._process = self._host.spawn(Command(argv=command, folder="/"), stdout=log, stderr=log)

    def _await(self, port: int) -> None:
        end = self._clock.monotonic() + _PATIENCE
        with closing(Greeting(port)) as greeting:
            while True:
                console = self._read(self.console)
                if self._process is None or self._process.poll() is not None:
                    # the kernel need not be at fault: a port may be taken, or QEMU was ended
                    said = self._read(f"{self.console}.qemu")
                    raise self._failed("QEMU ended before the machine was up", said, asked="")
                if panic := find_panic(console):
                    raise self._failed(panic, console)
                if greeting.comes(_LOOK):
                    return
                if self._clock.monotonic() > end:
                    raise self._failed(f"its sshd did not answer within {_PATIENCE:g} s", console)
                self._clock.sleep(_PAUSE)

    def _failed(self, what: str, said: str, *, asked: str | None = None) -> BootFailedError:
        return BootFailedError(
            f"the virtual machine {self.image.name} does not come up with {self.boot.text}: {what}",
            where=self.console,
            details=last_lines(said),
            remedy="read its whole console in that file; choose another kernel, or other boot.options",
            asked=self.boot.text if asked is None else asked,
        )

    def require_alive(self) -> None:
        """BootFailedError if its kernel has panicked since it came up; whoever cannot reach it asks."""
        console = self._read(self.console)
        if self._process is not None and (panic := find_panic(console)):
            raise BootFailedError(
                f"the virtual machine {self.image.name} crashed with {self.boot.text}: {panic}",
                where=self.console,
                details=last_lines(console),
                remedy="read its whole console in that file; choose another kernel, or other boot.options",
                asked=self.boot.text,
            )

    def _ssh(self, words: str, *, timeout: float) -> bool:
        argv = ("timeout", f"{timeout:g}", "ssh", "-F", self.ssh_config, "-o", "ConnectTimeout=5", self.destination)
        return self._here.run(Command(argv=(*argv, words)), timeout=timeout + 5, check=False).code == 0

    def _kernel(self, boot: Boot) -> GuestKernel:
        """One that was built from a commit, or else one of the image's."""
        built = find_built(self._places.cache, boot.kernel)
        if built is not None:
            return GuestKernel(release=boot.kernel, folder=built)
        return self.image.kernel(choose_kernel(self.image.kernels, boot.kernel, where=f"image {self.image.name}"))

    def _files(self, kernel: GuestKernel, *, port: int, ports: tuple[int, ...] = ()) -> Files:
        return Files(
            kernel=str(kernel.folder / "vmlinuz"),
            initrd=str(kernel.folder / "initrd.img"),
            root=str(self.image.folder / "root.img"),
            data=self._data,
            console=self.console,
            port=port,
            ports=ports,
        )

    def _make_data(self) -> None:
        if self._host.exists(self._data):
            return
        draft = f"{self._data}.partial"
        self._host.remove_tree(draft)
        size = f"{DATA_BYTES >> 20}M"
        self._host.run(Command(argv=("mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", draft, size)))
        self._host.rename(draft, self._data)

    def _write_config(self, port: int) -> None:
        known = self._control / "known_hosts"
        host_key = " ".join(_read_text(self.image.folder / "host.pub").split()[:2])
        files.make_folders(self._control, mode=0o700)
        files.write_atomically(known, f"[127.0.0.1]:{port} {host_key}\n".encode())
        lines = (
            f"Host {self.destination}",
            "HostName 127.0.0.1",
            f"Port {port}",
            "User root",
            f'IdentityFile "{self.image.folder / "id"}"',
            "IdentitiesOnly yes",
            f'UserKnownHostsFile "{known}"',
            "GlobalKnownHostsFile none",
            "StrictHostKeyChecking yes",
            "BatchMode yes",
        )
        files.write_atomically(Path(self.ssh_config), "".join(f"{line}\n" for line in lines).encode(), mode=0o600)

    def _read(self, path: str) -> str:
        try:
            return self._host.read(path).decode("utf-8", "replace")
        except HostFileError:
            return ""

    def remove(self) -> None:
        """Stop it, and remove its data disk and its other files."""
        self.stop()
        for path in (self._data, self.console, f"{self.console}.qemu", f"{self._data}.proof"):
            self._host.remove_tree(path)
        files.remove_rest(self._control)


def _read_text(path: Path) -> str:
    return reading.read_regular(path, most=sizes.MARKER).decode("utf-8", "replace")


def _ended(process: Process, seconds: float) -> bool:
    try:
        process.wait(seconds)
    except TimeoutError:
        return False
    return True


def _free_ports(number: int) -> list[int]:
    """Ports of 127.0.0.1 that are free at present."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(number)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]
