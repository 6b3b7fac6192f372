"""Every host passes the same tests."""

import os

import pytest

from pgstrata.errors import HostFileError
from pgstrata.ports.host import Command
from pgstrata.testing import HostConformance

pytestmark = pytest.mark.company

SETPRIV = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--reset-env", "sh")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can work as another user")


class OneHost(HostConformance):
    @pytest.fixture
    def host(self):
        bound = {}
        exec(self.construction, bound)
        yield bound["host"]
        bound["host"].close()

    def test_what_has_no_end_is_not_read(self, host, scratch):
        device, pipe, large = (f"{scratch}/{name}" for name in ("device", "pipe", "large"))
        for argv in (("ln", "-s", "/dev/zero", device), ("mkfifo", pipe), ("truncate", "--size=2T", large)):
            host.run(Command(argv=argv))
        for path, why in (
            (device, "not an ordinary file"),
            (pipe, "not an ordinary file"),
            (large, "larger than 512 MiB"),
        ):
            with pytest.raises(HostFileError, match=why) as caught:
                host.read(path)
            assert caught.value.where == path
        assert host.read(large, offset=2 << 40) == b""
        assert host.read_files([device, pipe, "/proc/sys/kernel/ostype"]) == {"/proc/sys/kernel/ostype": b"Linux\n"}


class TestLocalHost(OneHost):
    construction = "from pgstrata.hosts.local import LocalHost\nhost = LocalHost()"


@pytest.mark.root
@needs_root
class TestLocalHostAsAnotherUser(OneHost):
    construction = "from pgstrata.hosts.local import LocalHost\nhost = LocalHost(user='nobody')"


class TestShellHost(OneHost):
    construction = "from pgstrata.hosts.shell import ShellHost\nhost = ShellHost(name='a shell')"


class TestShellHostWithBash(OneHost):
    construction = "from pgstrata.hosts.shell import ShellHost\nhost = ShellHost(('bash',), name='bash')"


@pytest.mark.root
@needs_root
class TestShellHostAsAnotherUser(OneHost):
    construction = f"from pgstrata.hosts.shell import ShellHost\nhost = ShellHost({SETPRIV!r}, name='nobody')"
