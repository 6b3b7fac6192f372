"""What killed tests left behind is removed before the next ones, and nothing that somebody uses."""

import os
import shutil
import subprocess

import pytest

import leftovers
import sshd


@pytest.fixture
def gone():
    """The pid of a process that is no more."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_folder_goes_with_the_process_that_made_it_and_no_other_does(tmp_path, gone):
    left = [f"pgstrata-test-{gone}-abcd_123", f"pgs-{gone}-abcdefgh", f"pgstrata-far-{gone}-abcdefgh"]
    mine = [f"pgs-{os.getpid()}-abcdefgh", "pgstrata-test-abcdefgh", f"pgstrata-{gone}", f"other-{gone}-abcdefgh"]
    for name in (*left, *mine):
        (tmp_path / name / "data").mkdir(parents=True)
    leftovers.sweep([tmp_path, tmp_path / "nowhere"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(mine)


def test_a_name_that_points_elsewhere_is_not_followed(tmp_path, gone):
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / f"pgs-{gone}-abcdefgh").symlink_to(kept)
    leftovers.sweep([tmp_path])
    assert kept.exists()


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="only root can make network namespaces")
def test_networks_of_another_machine_go_with_the_process_that_made_them(gone):
    namespace, bridge = f"pgstrata-far-{gone}-1-1", f"pg{gone}-1"
    if subprocess.run(["ip", "netns", "add", namespace], check=False).returncode:
        pytest.skip("the kernel does not let us")
    subprocess.run(["ip", "link", "add", bridge, "type", "bridge"], check=True)
    inside = ["nsenter", f"--net=/run/netns/{namespace}", "--", "sleep", "60"]
    with subprocess.Popen(inside) as process:
        try:
            deadline = 200
            while str(process.pid) not in leftovers._ip("netns", "pids", namespace).split() and deadline:
                deadline -= 1
            leftovers.sweep([])
            assert process.wait(10) == -9
        finally:
            process.kill()
    listed = leftovers._ip("netns", "list") + leftovers._ip("link", "show")
    assert namespace not in listed
    assert f"{bridge}:" not in listed


def test_where_every_network_is_taken_that_is_said():
    taken = [f"198.{18 + number // 256}.{number % 256}.0/24 dev pg1-1" for number in range(512)]
    assert sshd._free_network("\n".join(taken[:7] + taken[8:])) == "198.18.7"
    with pytest.raises(sshd.RigImpossibleError, match="ip route"):
        sshd._free_network("\n".join(taken))
