"""Pure: the changes that make control groups and give them to the server's user, each with its undoing.

Where groups are, and why, belongs to `layers.cgroups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.model.changes import Change, ShellScript

# Argument: group. Not its values: whatever somebody else writes into a group of ours, it is ours to remove.
_READ_FOLDER: Final = '[ ! -d "$1" ] || echo made'

# Arguments: group, user, then pairs of file and value.
_MAKE: Final = """
umask 022  # the server's user must be able to enter
group=$1 user=$2; shift 2
mkdir "$group" || exit 1
while [ $# -gt 0 ]; do printf '%s\\n' "$2" >"$group/$1" || exit 1; shift 2; done
chown "$user" "$group/cgroup.procs"
"""

# Arguments: group, what `read` said before it was made. Processes that were killed need a moment to leave.
_REMOVE: Final = """
[ -z "$2" ] || exit 0
tries=0
while [ -d "$1" ] && ! rmdir "$1" 2>/dev/null; do
  tries=$((tries + 1))
  if [ "$tries" -ge 50 ]; then
    echo "there are still processes in $1: $(tr '\\n' ' ' <"$1/cgroup.procs")" >&2
    exit 1
  fi
  sleep 0.1
done
"""

# Arguments: base, top, user, controllers, then processes. Only the real root, which has no cgroup.type, can have
# processes and controllers for groups below; what is forked while the others move is found the next time.
_MAKE_BASE: Final = """
umask 022
base=$1 top=$2 user=$3 controllers=$4; shift 4
mkdir "$base" "$base/coordinator" || exit 1
for pid in $$ "$@"; do echo "$pid" >"$base/coordinator/cgroup.procs" || exit 1; done
if [ -e "$top/cgroup.type" ]; then
  for _ in 1 2 3; do
    for pid in $(cat "$top/cgroup.procs"); do echo "$pid" >"$base/coordinator/cgroup.procs" 2>/dev/null || :; done
  done
fi
for name in $controllers; do
  if ! echo "+$name" >"$top/cgroup.subtree_control"; then
    echo "processes in $top: $(tr '\\n' ' ' <"$top/cgroup.procs")" >&2
    exit 16
  fi
  echo "+$name" >"$base/cgroup.subtree_control" || exit 1
done
chown "$user" "$base/cgroup.procs" "$base/coordinator/cgroup.procs"
"""

# Arguments: base, top, controllers that the top did not have, the coordinator's own group, what `read` said before.
_REMOVE_BASE: Final = """
[ -z "$5" ] && [ -d "$1" ] || exit 0
base=$1 top=$2 own=$4
[ -d "$own" ] || own=$top
used() {  # by a group beside ours, which has other values than ours, a new one: they would go with the controller
  for other in "$top"/*/; do
    for file in weight idle max swap.max high low min latency; do
      [ ! -f "$other$1.$file" ] || [ "$(cat "$other$1.$file")" = "$(cat "$base/$1.$file")" ] || return 0
    done
  done
  return 1
}
for name in $(cat "$base/cgroup.subtree_control"); do echo "-$name" >"$base/cgroup.subtree_control"; done
for name in $3; do used "$name" || echo "-$name" >"$top/cgroup.subtree_control" || :; done
tries=0
while [ -d "$base/coordinator" ] && ! rmdir "$base/coordinator" 2>/dev/null; do
  for pid in $(cat "$base/coordinator/cgroup.procs"); do echo "$pid" >"$own/cgroup.procs" 2>/dev/null || :; done
  tries=$((tries + 1))
  [ "$tries" -lt 50 ] || { echo "there are still processes in $base/coordinator" >&2; exit 1; }
  [ "$tries" -lt 3 ] || sleep 0.1
done
rmdir "$base"
"""


def group_change(folder: str, user: str, values: Sequence[tuple[str, str]]) -> Change:
    """A group with these values in its files, which processes of the user may join."""
    words = (word for pair in values for word in pair)
    return Change(
        what=f"cgroup {folder}",
        value="; ".join(f"{file} = {value}" for file, value in values),
        read=ShellScript(text=_READ_FOLDER, arguments=(folder,)),
        do=ShellScript(text=_MAKE, arguments=(folder, user, *words)),
        undo=ShellScript(text=_REMOVE, arguments=(folder,)),
    )


def base_change(base: str, user: str, wanted: Sequence[str], pids: Sequence[str], former: tuple[str, str]) -> Change:
    """The study's group of version 2 with the coordinator in it.

    Args:
        base: its folder.
        user: who may move processes in it.
        wanted: controllers for the groups in it.
        pids: the coordinator's processes.
        former: controllers that the group above did not have, in one text, and the group of the coordinator so far.
    """
    top = base.rpartition("/")[0]
    return Change(
        what=f"cgroup {base}",
        value="made",
        read=ShellScript(text=_READ_FOLDER, arguments=(base,)),
        do=ShellScript(text=_MAKE_BASE, arguments=(base, top, user, " ".join(wanted), *pids)),
        undo=ShellScript(text=_REMOVE_BASE, arguments=(base, top, *former)),
    )
