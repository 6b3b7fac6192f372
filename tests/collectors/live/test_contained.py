"""Logs that docker and podman keep of a container: where they are, and the server's lines in them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.live.contained import Unwrapper, Wrapping, container_logs, container_of

ID = "7f3c" * 16
ERROR = "2026-11-28 01:02:03.004 UTC [7] ERROR:  division by zero\n"
TIME = "2026-11-28T01:02:03.004005006Z"


def json_file(*texts):
    return "".join(json.dumps({"log": text, "stream": "stderr", "time": TIME}) + "\n" for text in texts).encode()


def k8s_file(*texts):
    return "".join(
        f"{TIME} stderr {'F' if text.endswith(chr(10)) else 'P'} {text.rstrip()}\n" for text in texts
    ).encode()


@pytest.mark.parametrize(
    "memberships",
    [
        f"0::/system.slice/docker-{ID}.scope\n",
        f"0::/machine.slice/libpod-{ID}.scope/container\n",
        f"12:cpu,cpuacct:/docker/{ID}\n11:memory:/docker/{ID}\n0::/system.slice/containerd.service\n",
        f"0::/docker/{'a' * 64}/docker/{ID}\n",
        f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n",
    ],
)
def test_the_control_group_of_a_process_names_its_container(memberships):
    assert container_of(memberships) == ID


@pytest.mark.parametrize(
    "memberships", ["", "0::/\n", "0::/system.slice/postgresql.service\n", f"0::/x/{ID[:-1]}\n", f"0::/x/{ID}0\n", "x"]
)
def test_other_control_groups_name_none(memberships):
    assert container_of(memberships) == ""


def test_each_program_has_its_place_and_its_shape():
    assert set(container_logs(ID).values()) == {Wrapping.JSON_FILE, Wrapping.K8S_FILE}
    assert all(ID in path and path.startswith("/var/lib/") for path in container_logs(ID))


@pytest.mark.parametrize(("wrap", "wrapping"), [(json_file, Wrapping.JSON_FILE), (k8s_file, Wrapping.K8S_FILE)])
@given(size=st.integers(1, 400))
def test_lines_come_out_as_the_server_wrote_them_however_they_are_read(wrap, wrapping, size):
    long = "[7] LOG:  " + "x" * 50 + "\n"
    written = wrap(ERROR, long[:30], long[30:], "\tSeq Scan on t\n")
    unwrapper = Unwrapper(wrapping)
    found = b"".join(unwrapper.read(written[place : place + size]) for place in range(0, len(written), size))
    assert found.decode() == f"{ERROR}{long}\tSeq Scan on t\n"


@pytest.mark.parametrize("wrapping", [Wrapping.JSON_FILE, Wrapping.K8S_FILE])
def test_lines_of_another_shape_are_left_out(wrapping):
    strange = b'{}\n[]\n{"log": 7}\nx\n\n' + b"[" * 50_000 + b"\n" + TIME.encode() + b" stdin F text\n\xff\n"
    assert Unwrapper(wrapping).read(strange) == b""


def test_a_file_of_the_server_itself_is_read_as_it_is():
    assert Unwrapper(Wrapping.PLAIN).read(b"{}\nhalf") == b"{}\nhalf"


def test_after_a_gap_the_beginning_of_a_line_is_forgotten():
    unwrapper = Unwrapper(Wrapping.JSON_FILE)
    unwrapper.read(b'{"log": "half')
    unwrapper.forget()
    assert unwrapper.read(json_file(ERROR)) == ERROR.encode()
