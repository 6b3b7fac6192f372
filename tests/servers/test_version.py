"""Versions and compilers from real output and from the shapes that forks print."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.errors import ParseError
from pgstrata.servers.version import parse_compiler, parse_server_version

CAPTURES = Path(__file__).parent.parent / "captures" / "pg_version"


@pytest.mark.parametrize("capture", sorted(CAPTURES.iterdir()), ids=lambda path: path.name)
def test_captured_output_is_read_as_expected(capture):
    output = (capture / "output.txt").read_text()
    expected = json.loads((capture / "expected.json").read_text())
    version = parse_server_version(output)
    assert (version.text, version.number, version.fork) == (expected["text"], expected["number"], expected["fork"])
    assert parse_compiler(output) == expected["compiler"]


@pytest.mark.parametrize(
    ("text", "number", "fork"),
    [
        ("postgres (PostgreSQL) 9.6.24", 90624, ""),
        ("15.18 (Debian 15.18-0+deb12u1)", 150018, ""),
        ("19devel", 190000, ""),
        ("18beta1", 180000, ""),
        ("postgres (PostgreSQL) 18rc1 (Ubuntu 18~rc1-1.pgdg24.04+1)", 180000, ""),
        ("postgres (EnterpriseDB) 16.3.0", 160003, "EnterpriseDB"),
        ("PostgreSQL 16.3 (EnterpriseDB Advanced Server 16.3.0) on x86_64-pc-linux-gnu, compiled by gcc (GCC) 8.5.0, 64-bit", 160003, "EnterpriseDB Advanced Server 16.3.0"),
        ("PostgreSQL 15.8.1 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit, Postgres Pro 15.8.1", 150008, "Postgres Pro 15.8.1"),
        ("postgres (Greenplum Database) 9.4.26", 90426, "Greenplum Database"),
        ("PostgreSQL 16.3 - Percona Distribution on x86_64-pc-linux-gnu, compiled by gcc, 64-bit", 160003, "Percona Distribution"),
        ("PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 16.0.6, 64-bit", 110002, "YB-2.20.1.0-b0"),
        ("16.3 (IvorySQL 3.3)", 160003, "IvorySQL 3.3"),
    ],
)  # fmt: skip
def test_forks_and_development_versions_get_the_number_that_the_server_would_give(text, number, fork):
    version = parse_server_version(text)
    assert (version.number, version.fork) == (number, fork)


def test_the_text_of_a_version_is_what_show_server_version_prints():
    banner = "PostgreSQL 17.2, compiled by Visual C++ build 1942, 64-bit"
    assert parse_server_version(banner).text == "17.2"
    assert parse_compiler(banner) == "Visual C++ build 1942"


@pytest.mark.parametrize(
    "text", ["", "garbage", "CockroachDB CCL v23.1.2 (x86_64-pc-linux-gnu)", "6.5.3", "16.100", "18foo"]
)
def test_what_is_no_postgresql_is_refused_with_the_line(text):
    with pytest.raises(ParseError) as caught:
        parse_server_version(text)
    assert (text or "nothing") in str(caught.value)
    assert caught.value.remedy


@given(st.integers(10, 40), st.integers(0, 99))
def test_every_plain_version_keeps_its_major(major, minor):
    version = parse_server_version(f"postgres (PostgreSQL) {major}.{minor}")
    assert version.major == str(major)
    assert version.number == major * 10000 + minor


@given(st.text(max_size=60))
def test_any_text_is_a_version_or_a_parse_error(text):
    with contextlib.suppress(ParseError):
        assert parse_server_version(text).number >= 70000


def test_a_number_of_any_length_is_no_version():
    with pytest.raises(ParseError):
        parse_server_version(f"PostgreSQL {'9' * 5000} on x86_64")


def test_a_text_without_compiler_gives_an_empty_one():
    assert parse_compiler("postgres (PostgreSQL) 18.6") == ""
