"""The state of a stopped cluster is read from its control file, whichever program the installation lacks."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.datasets.control_file import SHUT_DOWN, parse_cluster_state
from pgstrata.errors import ParseError


def control_file(state, *, version=1300, order="<"):
    return struct.pack(f"{order}QIII", 7012345678901234567, version, 202007201, state) + bytes(8000)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [843, 960, 1002, 1300, 1800])
def test_a_cluster_that_was_stopped_is_told_from_one_that_was_not(order, version):
    assert parse_cluster_state(control_file(1, version=version, order=order)) == SHUT_DOWN
    assert parse_cluster_state(control_file(6, version=version, order=order)) == "in production"
    assert parse_cluster_state(control_file(2, version=version, order=order)) == "shut down in recovery"


def test_a_state_of_the_future_is_shown_and_is_not_shut_down():
    assert parse_cluster_state(control_file(77)) == "state 77"


@pytest.mark.parametrize("content", [b"", b"short", bytes(8192), b"# a text file, and no control file at all\n"])
def test_another_file_is_refused(content):
    with pytest.raises(ParseError, match="control file"):
        parse_cluster_state(content)


@given(st.binary(max_size=64))
def test_any_content_is_read_or_refused(content):
    with contextlib.suppress(ParseError):
        assert parse_cluster_state(content)
