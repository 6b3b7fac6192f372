import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

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
