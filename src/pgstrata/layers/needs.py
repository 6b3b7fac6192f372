"""What a server will ask of the kernel in one piece, found out before it starts.

The server itself is asked, on a skeleton of its data directory: settings, the control file and empty folders. The
pristine data are read and left as they are, and a clone is not needed yet.
"""

from __future__ import annotations

import re
from typing import Final

from pgstrata.errors import ServerFailedError
from pgstrata.layers.settings import render_settings
from pgstrata.model.changes import ShellScript
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Needs
from pgstrata.model.old_servers import settings_of_its_time
from pgstrata.model.server import Build
from pgstrata.ports.host import Command, Host
from pgstrata.ports.server import Dataset

# `postgres -C` computes shared_memory_size from 15 on.
_SAYS_ITSELF_FROM: Final = 150000
_MB: Final = 1024**2
_LOG_TAIL: Final = 8
_TIMEOUT: Final = 60.0

# $1 postgres, $2 data directory, further ones: what is asked of postgres; settings come by standard input.
_ASK: Final = """
exec 2>&1
postgres=$1 data=$2
shift 2
# what a killed one left; nobody asks for as long as that
find /tmp -maxdepth 1 -name 'pgstrata-needs-*' -user "$(id -u)" -mmin +10 -exec rm -rf {} + 2>/dev/null
# a short name: the path of a unix socket in it has at most 107 bytes
skeleton=$(mktemp -d /tmp/pgstrata-needs-XXXXXXXX) || exit
trap 'rm -rf "$skeleton"' EXIT
trap 'exit 1' HUP INT TERM
for path in "$data"/*; do
    name=${path##*/}
    if [ -d "$path" ]; then
        mkdir "$skeleton/$name" || exit
    else
        case $name in postmaster.* | *.password) ;; *) cp "$path" "$skeleton/$name" || exit ;; esac
    fi
done
cp "$data/global/pg_control" "$skeleton/global/" || exit
cat >"$skeleton/pgstrata.conf" || exit
cd "$skeleton" || exit
"$postgres" -D "$skeleton" "$@" -c unix_socket_directories="$skeleton" -c hba_file="$skeleton/nowhere"
"""

_SAID: Final = re.compile(r"^(\d+)$", re.MULTILINE)
# IpcMemoryCreate logs its request in all versions with huge pages; without pg_hba.conf the server then gives up, which
# is after the memory was mapped and before its data are looked at (PostmasterMain).
_LOGGED: Final = re.compile(r"invoking IpcMemoryCreate\(size=(\d+)\)")
_LOGGING: Final = {
    "log_min_messages": "debug3",
    "log_destination": "stderr",
    "logging_collector": "off",
    "listen_addresses": "",
    "huge_pages": "off",
}


def find_needs(host: Host, environment: Environment, build: Build, dataset: Dataset) -> Needs:
    """What the server of an environment needs: shared memory in bytes, as it says itself, and its version.

    From 15 on `shared_memory_size` is rounded up to whole MB; before, it is the exact request.

    Args:
        host: acts as the server's user.
        environment: its settings count.
        build: the server.
        dataset: the data that it will run on: the size of WAL segments and its configuration count.

    Raises:
        ServerFailedError: the server did not say, for instance because of a setting that it does not know.
    """
    says_itself = build.version.number >= _SAYS_ITSELF_FROM
    if says_itself:
        asked: tuple[str, ...] = ("-C", "shared_memory_size")
    else:
        asked = tuple(word for name, value in _LOGGING.items() for word in ("-c", f"{name}={value}"))
    script = ShellScript(text=_ASK, arguments=(build.program("postgres"), dataset.location, *asked))
    command = Command(
        argv=script.argv,
        environment={**build.process_environment, "LC_ALL": "C", "TZ": "GMT"},
        stdin=render_settings(settings_of_its_time(environment.settings, build.version.number)).encode(),
    )
    said = host.run(command, timeout=_TIMEOUT, check=False).text
    found = (_SAID if says_itself else _LOGGED).search(said)
    if found is None:
        raise ServerFailedError(
            "the server did not say how much shared memory it will need",
            where=f"environment {environment.name}, {build.program('postgres')}",
            details=tuple(line for line in said.splitlines() if "DEBUG: " not in line)[-_LOG_TAIL:],
            remedy="a setting that this version does not know is the usual cause",
        )
    unit = _MB if says_itself else 1
    return Needs(shared_memory=int(found.group(1)) * unit, version=build.version.number)
