"""A server that is not ours to start or stop, as far as pgstrata knows."""

import os
import pwd
import shutil
import subprocess
from contextlib import contextmanager
from functools import partial


@contextmanager
def foreign_server(folder, *, port, listen="", options="", level="embedded", far=None):
    """Started and stopped as the user that owns the folder, in this network or in that of a `FarHost`."""
    from pgstrata.app.machine import open_machine

    with open_machine(print) as machine:
        (build,) = machine.servers.fetch((level,))
    folder.mkdir()
    user = None
    if os.getuid() == 0:
        user = "postgres" if _known("postgres") else "nobody"
        shutil.chown(folder, user)
    password = folder / "pw"
    password.write_text("canary-pw-7391\n")
    password.chmod(0o644)

    environ = {**os.environ, **build.process_environment}

    def run(*argv):
        if far is not None:
            owner = pwd.getpwnam(user)
            argv = far.inside("setpriv", f"--reuid={user}", f"--regid={owner.pw_gid}", "--clear-groups", *argv)
        subprocess.run(
            argv, check=True, cwd="/", user=None if far else user, env=environ, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    data = folder / "data"
    run(build.program("initdb"), "-D", data, "-U", "boss", "-A", "scram-sha-256", f"--pwfile={password}", "--no-sync")
    if "ssl=on" in options:
        names = ("-keyout", data / "server.key", "-out", data / "server.crt")
        run("openssl", "req", "-new", "-x509", "-nodes", "-subj", "/CN=localhost", "-newkey", "rsa:2048", *names)
    if far is not None:
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet scram-sha-256\n")
    options += f" -c listen_addresses='{listen}' -c unix_socket_directories={folder} -c port={port} -c fsync=off"
    # no checkpoint but those that somebody asks for
    options += " -c checkpoint_timeout=1d"
    run(build.program("pg_ctl"), "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    yield {
        "dsn": f"host={folder} port={port} user=boss password=canary-pw-7391 dbname=postgres",
        "psql": build.program("psql"),
        "environ": environ,
        "folder": folder,
        "port": port,
        "restart": partial(
            run, build.program("pg_ctl"), "-D", data, "-w", "-m", "fast", "-l", folder / "log", "restart"
        ),
        "pid": int((data / "postmaster.pid").read_text().split()[0]),
    }
    run(build.program("pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")


def _known(name):
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
