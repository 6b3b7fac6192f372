import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import sshd

OTHER_USER = "nobody"


@pytest.fixture
def scratch(host):
    # Not tmp_path: another user could not enter its parents.
    folder = Path(tempfile.mkdtemp(prefix="pgstrata test ", dir="/tmp"))
    if host.user == OTHER_USER:
        shutil.chown(folder, OTHER_USER)
    yield str(folder)
    shutil.rmtree(folder)


@pytest.fixture
def small_folder(host, scratch):
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=1777", "small", scratch], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode()}")
    yield scratch
    subprocess.run(["umount", scratch], check=True)


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    """Another machine, behind ssh."""
    if reason := sshd.why_not():
        pytest.skip(reason)
    try:
        with sshd.far_hosts(tmp_path_factory.mktemp("ssh"), 1) as found:
            yield found[0]
    except sshd.RigImpossibleError as error:
        pytest.skip(f"no network namespaces here: {error}")
