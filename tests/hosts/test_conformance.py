"""Every host passes the same tests."""

import os

import pytest

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
