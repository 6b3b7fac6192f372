"""Scripts that boot a host into another kernel once, check whether it runs that kernel, and boot its own one again.

The default entry of a boot loader is never changed: each way is good for one boot, and the next reboot ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgstrata.model.changes import Change, ShellScript

BOOTED: Final = "the booted kernel"
"""The name of the change in a ledger."""
OTHERWISE: Final = "another boot"
"""What is read if the host runs anything else than it was asked to."""
REBOOTS: Final = 75
"""Exit code of an undo that has begun a reboot; the change is undone when the host is back."""


class BootWay(StrEnum):
    """How a host is told which kernel to start next."""

    GRUB = "grub-reboot"
    GRUB2 = "grub2-reboot"
    SYSTEMD = "bootctl"
    KEXEC = "kexec"
    DEFAULT = "reboot"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBoot:
    """One boot: of `release`, with `options` among the words of its command line, and none of `unwanted`.

    `unwanted` are the words of other boots of the study, so that the boots can be told from each other. `entry` is the
    name of the boot loader's entry (GRUB, systemd-boot). kexec needs `image`, `initrd` (empty for none) and `line`, the
    whole command line.
    """

    release: str
    way: BootWay
    options: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    entry: str = ""
    image: str = ""
    initrd: str = ""
    line: str = ""

    @property
    def text(self) -> str:
        """For people, and as it is read from a host that runs it."""
        return " ".join((self.release, *self.options))


# Words are split at blanks, and none of them is a pattern of file names.
_RUNS: Final = r"""
set -f
has() { case " $(cat /proc/cmdline) " in *" $1 "*) ;; *) return 1 ;; esac; }
runs() {
    [ "$(uname -r)" = "$1" ] || return 1
    for word in $2; do has "$word" || return 1; done
    for word in $3; do has "$word" && return 1; done
    return 0
}
"""
_READ: Final = f"""{_RUNS}
if runs "$1" "$2" "$3"; then echo "$1${{2:+ }}$2"; else echo "{OTHERWISE}"; fi
"""
# Begun by a process of its own, so that this one ends and the connection can be left in order. Systemd has to start it:
# with a unit, and with a session if it is set up so, all their processes are ended.
_REBOOT: Final = r"""
restart() {
    later='sleep 2; sync
        if [ -d /run/systemd/system ]; then systemctl "$1"
        elif [ "$1" = kexec ]; then kexec -e
        else reboot
        fi'
    if [ -d /run/systemd/system ] && systemd-run --quiet --collect --no-block sh -c "$later" sh "$1"; then return; fi
    setsid sh -c "$later" sh "$1" </dev/null >/dev/null 2>&1 &
}
"""
_ARRANGE: Final = r"""
case $4 in
    grub-reboot | grub2-reboot) "$4" "$5" ;;
    bootctl) bootctl set-oneshot "$5" ;;
    kexec)
        if [ -n "$7" ]; then kexec -l "$6" --initrd="$7" --command-line="$8"
        else kexec -l "$6" --command-line="$8"
        fi
        ;;
esac
"""
_DO: Final = f"""set -e
{_REBOOT}{_ARRANGE}
if [ "$4" = kexec ]; then restart kexec; else restart reboot; fi
"""
_SETTLE: Final = (
    'if [ -d /run/systemd/system ]; then timeout "$1" systemctl is-system-running --wait >/dev/null 2>&1; fi; :'
)
_SECONDS_TO_SETTLE: Final = 120
# GRUB keeps the choice of the next boot that somebody else has made; that of systemd-boot is taken away.
_FORGET: Final = r"""
forget() { [ "$("$1" list | sed -n "s/^next_entry=//p")" != "$2" ] || "$1" - unset next_entry; }
"""
_UNDO: Final = f"""{_RUNS}{_REBOOT}{_FORGET}
if runs "$1" "$2" "$3"; then now="$1${{2:+ }}$2"; else now="{OTHERWISE}"; fi
if [ "$now" != "$9" ]; then
    restart reboot
    echo "the host is rebooting into its default kernel: give the same command again when it is back" >&2
    exit {REBOOTS}
fi
case $4 in
    grub-reboot) forget grub-editenv "$5" ;;
    grub2-reboot) forget grub2-editenv "$5" ;;
    bootctl) bootctl set-oneshot "" ;;
    kexec) kexec -u >/dev/null 2>&1 || : ;;
esac
"""

MENU_MARK: Final = "==> "
READ_MENU: Final = ShellScript(
    text=r"""
mark() { printf '\n==> %s\n' "$1"; }
mark running; uname -r
mark line; cat /proc/cmdline
mark files
for file in /boot/vmlinu?-* /boot/Image-* /boot/kernel-* /boot/init*; do [ -s "$file" ] && echo "$file"; done
mark programs
for name in grub-reboot grub2-reboot bootctl kexec; do command -v "$name" >/dev/null && echo "$name"; done
mark kexec_disabled; cat /proc/sys/kernel/kexec_load_disabled 2>/dev/null
for file in /boot/grub/grub.cfg /boot/grub2/grub.cfg; do
    if [ -f "$file" ]; then
        mark grub; cat "$file"
        kept=${file%/*}
        if [ -e "$kept/grubenv" ]; then kept=$kept/grubenv; fi
        mark grubenv; findmnt -n -o FSTYPE,SOURCE -T "$kept" 2>/dev/null
        break
    fi
done
for file in /boot/loader/entries/*.conf; do if [ -f "$file" ]; then mark "$file"; cat "$file"; fi; done
if [ -e /sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f ]; then
    mark bootctl; bootctl list --json=short --no-pager 2>/dev/null
fi
:
"""
)
"""Prints sections, each below a line `==> NAME`: kernels and boot loaders of a machine (for `boots.menu`).

Empty files of /boot, as a full disk leaves them, count as missing.
"""


READ_UNKNOWN: Final = ShellScript(
    text=r"""
dmesg 2>/dev/null | sed -n 's/.*Unknown kernel command line parameters "\(.*\)", will be passed.*/\1/p' | tail -n 1
"""
)
"""Prints the words of its command line that the kernel has not understood, if its messages still say so."""


def boot_change(boot: NextBoot) -> Change:
    """Boot once as asked. The reboot has begun when the change has been made; undoing it is a reboot, too.

    The reading only says whether the host runs what was asked for. So any other kernel counts as undone, whatever the
    default is by then.
    """
    seen = (boot.release, " ".join(boot.options), " ".join(boot.unwanted))
    arguments = (*seen, str(boot.way), boot.entry, boot.image, boot.initrd, boot.line)
    return Change(
        what=BOOTED,
        value=boot.text,
        read=ShellScript(text=_READ, arguments=seen),
        do=ShellScript(text=_DO, arguments=arguments),
        undo=ShellScript(text=_UNDO, arguments=arguments),
        lasting=True,
    )


def settle() -> ShellScript:
    """Wait until systemd has finished what belongs to the boot, for two minutes at most; nothing without systemd.

    Before, the first runs would share the machine with services that start.
    """
    return ShellScript(text=_SETTLE, arguments=(str(_SECONDS_TO_SETTLE),))


def plain_reboot() -> ShellScript:
    """Reboot into the default kernel; begun when the script has ended."""
    return ShellScript(text=f"{_REBOOT}restart reboot")
