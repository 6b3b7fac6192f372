"""Pure: what a host is told by a shell to do with owners, locks and the files of a ledger, and to act as another user.

Each is a command of its own; its exit codes stand beside it.
"""

from __future__ import annotations

from typing import Final

from pgstrata.model.changes import Change, ShellScript

FOREIGN_FOLDER: Final = 3
NUMBER_TAKEN: Final = 17
STILL_AT_WORK: Final = 75
LOCK_TAKEN: Final = 75
LOCK_UNUSABLE: Final = 76
NO_FLOCK: Final = 77

# A folder that is there belongs to its user, or is nobody's of ours: in /tmp somebody else could have put it there.
# A new one gets its mode and owner as the working folder, so that nothing that was put in its place gets them: a link
# leads to another path, and another folder of root's that can be moved there is not empty or belongs to nobody else.
_MAKE_PLACE: Final = f"""
umask 077
mode=$1 owner=$2 folder=$3
if [ -d "$folder" ] && [ ! -L "$folder" ]; then
    [ "$(stat -c %u -- "$folder")" = "$(id -u -- "$owner")" ] || {{ echo "$folder"; exit {FOREIGN_FOLDER}; }}
    exit 0
fi
name=${{folder##*/}}
cd -P -- "${{folder%/*}}/" && above=$(pwd) || exit 1
mkdir -- "$name" && cd -P -- "$name" || exit 1
[ "$(pwd)" = "${{above%/}}/$name" ] && [ -O . ] && [ -z "$(ls -A)" ] || {{ echo "$folder was replaced" >&2; exit 1; }}
chmod "$mode" . || exit 1
[ "$owner" = "$(id -un)" ] || chown -- "$owner:" . || exit 1
"""
_FIND_LOCK: Final = f"""
folder=$(cd -P -- "${{1%/*}}/" && pwd) || exit {LOCK_UNUSABLE}
file="${{folder%/}}/${{1##*/}}"
"""
# Another user who may write there could put a link or a pipe in its place between the check and the opening. So the
# opened file is checked: it must be a file with one name only (a removed file has another path in /proc).
_OPEN_LOCK: Final = f"""
[ -f "$file" ] && [ ! -L "$file" ] && [ -r "$file" ] || exit {LOCK_UNUSABLE}
exec 9<"$file"
[ -f /proc/self/fd/9 ] && [ "$(stat -L -c %h /proc/self/fd/9)" = 1 ] || exit {LOCK_UNUSABLE}
[ "$(readlink /proc/self/fd/9)" = "$file" ] || exit {LOCK_UNUSABLE}
"""
# In a sticky folder the kernel may refuse to open somebody else's file with O_CREAT (fs.protected_regular), which
# shells do: hence it is made by noclobber, opened for reading and written by dd.
_HOLD_LOCK: Final = f"""
command -v flock >/dev/null || exit {NO_FLOCK}
{_FIND_LOCK}
[ -e "$file" ] || (umask 0; set -C; : >"$file")
{_OPEN_LOCK}
flock --nonblock 9 || exit {LOCK_TAKEN}
printf %s "$2" | dd of=/proc/self/fd/9 conv=nocreat || exit {LOCK_UNUSABLE}
exec sleep infinity
"""
_READ_LOCK: Final = f"{_FIND_LOCK}{_OPEN_LOCK}head -c 4096 <&9"
_MAKE_LEDGER: Final = 'umask 022; mkdir -p -- "$1" && chmod 755 -- "$1" && sync -- "$1" "$2"'
# Everybody on the host may read what is changed. What a killed pgstrata sent in part only (its `sudo` outlives it) gets
# no name. `mv --no-clobber` leaves the file where it is if there is such an entry, and does not always say so. What has
# its name but may not be on disk is taken away again: an entry that nobody knows of would be undone out of its turn.
_PUT_ENTRY: Final = f"""
umask 022
cat >"$2" && [ "$(wc -c <"$2")" -eq "$4" ] && sync -- "$2" && own=$(stat -c %i -- "$2") || {{ rm -f -- "$2"; exit 1; }}
mv -nT -- "$2" "$1"
[ ! -e "$2" ] && sync -- "$3" && exit 0
code=1
if [ "$(stat -c %i -- "$1")" = "$own" ]; then rm -f -- "$1"; elif [ -e "$1" ]; then code={NUMBER_TAKEN}; fi
rm -f -- "$2"
exit "$code"
"""
# Whatever a script starts inherits a lock beside its entry, and may outlive pgstrata and the script: `sudo` cannot be
# killed by who called it, nor mkfs by the death of its shell. Everybody may read the entry, and who may open a file can
# lock it: hence a file of its own, which nobody else can open.
_HOLDING: Final = f"""
entry=$1 lock=$2 patience=$3
shift 3
if [ -e "$entry" ] && command -v flock >/dev/null; then
    (umask 077; : >>"$lock") && exec 8<"$lock" || exit 1
    flock -s -w "$patience" -E {STILL_AT_WORK} 8 || {{
        code=$?
        echo "another process holds $lock: end it (fuser $lock names it), or wait for it" >&2
        exit "$code"
    }}
fi
exec "$@"
"""
_AWAIT_REST: Final = f"""
[ -e "$1" ] && command -v flock >/dev/null || exit 0
exec 8<"$1" && flock -x -w "$2" -E {STILL_AT_WORK} 8
"""
_LOCK: Final = ".lock"
_LOCK_PATIENCE: Final = 60
"""Seconds for a lock that nobody else can take but another `pgstrata host restore`, for a moment."""


# A file of the kernel may have gone together with its device or group; what was refused was never changed, such as a
# parameter that nobody may write.
WRITE_VALUE: Final = 'printf "%s\\n" "$2" >"$1"'
_READ_VALUE: Final = '[ ! -e "$1" ] || cat "$1"'
_WRITE_BACK: Final = f'[ -e "$1" ] || exit 0; [ "$(cat "$1")" = "$2" ] || {WRITE_VALUE}'


def value_change(what: str, file: str, value: str) -> Change:
    """A value in a file of the kernel, which reads as it was written."""
    return Change(
        what=what,
        value=value,
        read=ShellScript(text=_READ_VALUE, arguments=(file,)),
        do=ShellScript(text=WRITE_VALUE, arguments=(file, value)),
        undo=ShellScript(text=_WRITE_BACK, arguments=(file,)),
    )


def become(user: str, group: str) -> tuple[str, ...]:
    """Words in front of a command of root's that run it as another user, with the user's groups and environment."""
    return ("setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups", "--reset-env")


def owners(*paths: str) -> tuple[str, ...]:
    """A command that prints the owner, the octal mode and the file type of each path, one path per line."""
    return ("stat", "-c", "%U %a %F", "--", *paths)


def examine(*paths: str) -> tuple[str, ...]:
    """A command that prints path, owner, octal mode, bytes and file type of each path, each followed by a NUL."""
    return ("stat", "--printf", r"%n\0%U\0%a\0%s\0%F\0", "--", *paths)


def make_place(folder: str, *, mode: str, owner: str) -> ShellScript:
    """A folder in one that is there, given to its owner; FOREIGN_FOLDER prints it if it is another user's."""
    return ShellScript(text=_MAKE_PLACE, arguments=(mode, owner, folder))


def hold_lock(path: str, identity: str) -> ShellScript:
    """Take a lock, write who holds it, and hold it until killed; LOCK_TAKEN, LOCK_UNUSABLE, NO_FLOCK."""
    return ShellScript(text=_HOLD_LOCK, arguments=(path, identity))


def read_lock(path: str, seconds: float) -> tuple[str, ...]:
    """A command that prints what the holder of a lock wrote, at most 4096 bytes; it ends after so many seconds."""
    return ("timeout", f"{seconds:g}", *ShellScript(text=_READ_LOCK, arguments=(path,)).argv)


def make_ledger(folder: str) -> ShellScript:
    """The folder of a ledger, readable for everybody and forced to disk."""
    return ShellScript(text=_MAKE_LEDGER, arguments=(folder, folder.rpartition("/")[0] or "/"))


def put_entry(path: str, aside: str, size: int) -> ShellScript:
    """A file of `size` bytes, from standard input, on disk as a whole or not at all; NUMBER_TAKEN if it is there."""
    return ShellScript(text=_PUT_ENTRY, arguments=(path, aside, path.rpartition("/")[0], str(size)))


def put_note(path: str) -> ShellScript:
    """A file that everybody may read, from standard input."""
    return ShellScript(text='umask 022; cat >"$1"', arguments=(path,))


def remove_files(*paths: str) -> ShellScript:
    """Remove files; nothing happens to those that are not there, and folders are an error."""
    return ShellScript(text='exec rm -f -- "$@"', arguments=paths)


def make_private_folder(template: str) -> tuple[str, ...]:
    """A command that makes a folder with mode 0700 and prints its path; random letters replace each X at the end."""
    return ("mktemp", "-d", "--", template)


def give_folder(user: str, folder: str) -> tuple[str, ...]:
    """A command of root's that gives an empty folder away."""
    return ("chown", "--no-dereference", "--", user, folder)


def empty_folder(folder: str) -> tuple[str, ...]:
    """A command that removes all that is in a folder, for the user whose it is."""
    return ("find", folder, "-mindepth", "1", "-delete")


def remove_empty_folder(folder: str) -> tuple[str, ...]:
    """A command that removes a folder, but no link and nothing that is in it."""
    return ("rmdir", "--", folder)


def lock_of(entry: str) -> str:
    """The file that is locked while something works on what an entry of a ledger stands for; its owner's alone."""
    return entry.removesuffix(".json") + _LOCK


def holding(entry: str, script: ShellScript, patience: int = _LOCK_PATIENCE) -> ShellScript:
    """Run a script; as long as anything of it runs, the lock of the entry is held. STILL_AT_WORK: it cannot be had."""
    return ShellScript(text=_HOLDING, arguments=(entry, lock_of(entry), str(patience), *script.argv))


def await_rest(entry: str, seconds: int) -> ShellScript:
    """Wait until nothing runs that was started by `holding`; STILL_AT_WORK."""
    return ShellScript(text=_AWAIT_REST, arguments=(lock_of(entry), str(seconds)))
