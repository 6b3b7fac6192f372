"""Installed servers that cannot be used: what is wrong with them, their last words, and what to do."""

import os
import sys

import pytest

from pgstrata import errors
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.shell import ShellHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers


@pytest.fixture(params=["local", "shell", "another user"])
def host(request):
    if request.param == "another user" and os.getuid() != 0:
        pytest.skip("needs root")
    user = "nobody" if request.param == "another user" else None
    host = ShellHost(("sh",), name="shell") if request.param == "shell" else LocalHost(user=user)
    yield host
    host.close()


def failure(entered, host, where):
    supply = Servers.make(
        ServerSite(here=LocalHost(), host=host, cache=str(entered / "cache"), note=lambda line: None),
        machine="x86_64",
        python=sys.executable,
    )
    with pytest.raises(errors.ServerUnusableError) as caught:
        supply.resolve(ServerSpec(kind=ServerKind.PREFIX, value=str(where)))
    assert caught.value.exit_code == 1
    assert caught.value.remedy
    return caught.value


def test_a_script_that_only_complains_is_quoted(entered, installation, host):
    where = installation(entered / "pg")
    (where / "bin" / "postgres").write_text("#!/bin/sh\necho 'the licence has expired' >&2\nexit 1\n")
    error = failure(entered, host, where)
    assert "postgres does not start on this machine (status 1)" in error.what
    assert error.where == f"{where}/bin/postgres"
    assert "the licence has expired" in error.details


def test_a_complaint_on_standard_output_is_quoted_as_well(entered, installation, host):
    where = installation(entered / "pg")
    (where / "bin" / "initdb").write_text("#!/bin/sh\necho 'no initdb today'\nexit 3\n")
    error = failure(entered, host, where)
    assert "initdb does not start" in error.what
    assert error.details == ("no initdb today",)


def test_a_file_that_is_not_executable_is_named(entered, installation, host):
    where = installation(entered / "pg")
    (where / "bin" / "postgres").chmod(0o644)
    error = failure(entered, host, where)
    assert error.where == f"{where}/bin/postgres"
    assert "may not execute it" in error.what
    assert f"chmod a+x {where}/bin/*" in error.remedy


def test_a_program_for_another_machine_is_refused(entered, installation, host):
    where = installation(entered / "pg")
    (where / "bin" / "postgres").write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x02\0\xff\xff" + b"garbage" * 40)
    error = failure(entered, host, where)
    assert "postgres does not start on this machine" in error.what
    assert error.where == f"{where}/bin/postgres"
