# Writes down counters of the kernel and of some processes and their children: at once, each second, when sent TERM.
# Arguments: folder of the data, folder of the WAL if it lies apart (each may be empty), the text of seconds.pl (empty:
# do without perl), process ids, the postmaster's among them. Output: "wall SECONDS" once, "device data MAJOR:MINOR ..."
# and "device wal ..." where they are known. Each sample begins with "@ SECONDS_SINCE_BOOT", "title PID TITLE" stands
# before the first lines of a process, the rest is FILE:LINE.
# grep and sleep begin in half the time without the tables of UTF-8
LC_ALL=C
export LC_ALL
lines='^([0-9 ]|cpu |ctxt |procs_|pgfault |pgmajfault |Mem(Total|Available):|Dirty:|Writeback:|some |(read|write)_bytes|'
lines="$lines(non)?voluntary_)"
host="/proc/loadavg /proc/stat /proc/vmstat /proc/meminfo /proc/diskstats"
host="$host /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory"
before=
older=
# the kernel may have been built without lists of children
[ ! -r "/proc/$$/task/$$/children" ] || listed=yes
find_processes() {
    pids=
    if [ -n "$listed" ]; then
        for parent; do
            # read fails at the end of a file without a line end, and has read it all the same
            read -r children <"/proc/$parent/task/$parent/children" || :
            pids="$pids $parent $children"
            children=
        done
    elif [ "$#" -gt 0 ]; then
        parents=$(IFS='|' && echo "$*")
        for file in $(grep -s -l -E "^($parents) |\) [A-Za-z] ($parents) " /proc/[0-9]*/stat); do
            file=${file#/proc/}
            pids="$pids ${file%/stat}"
        done
    fi
}
# twice for each process: when it has just begun it still has its parent's
tell_titles() {
    for pid in $pids; do
        case $older in *" $pid "*) continue ;; esac
        { IFS= read -r title <"/proc/$pid/cmdline" || :; } 2>/dev/null
        case $title in postgres:*) echo "title $pid $title" ;; esac
        title=
    done
    older=$before
    before=" $pids "
}
# the devices of the file system of a folder: of a partition its disk, of btrfs, which has a number of its own, all of them
tell_devices() {
    [ -n "$2" ] && number=$(stat -L -c %d -- "$2") || return 0
    devices=/sys/dev/block/$((number >> 8 & 4095)):$((number & 255 | number >> 12 & 1048320))
    if [ ! -e "$devices" ]; then
        source=$(findmnt --noheadings --raw --nofsroot --output SOURCE --target "$2") || return 0
        source=$(readlink -f -- "$source") || return 0
        set -- "$1" /sys/fs/btrfs/*/devices/"${source##*/}"
        [ -e "$2" ] || return 0
        devices="${2%/*}/*"
    fi
    numbers=
    for device in $devices; do
        [ ! -e "$device/partition" ] || device=$device/..
        [ -r "$device/dev" ] || return 0
        read -r number <"$device/dev"
        case " $numbers " in *" $number "*) ;; *) numbers="$numbers $number" ;; esac
    done
    echo "device $1$numbers"
}
sample() {
    read -r now _ </proc/uptime
    find_processes "$@"
    echo "@ $now"
    tell_titles
    processes=
    for pid in $pids; do
        processes="$processes /proc/$pid/stat /proc/$pid/schedstat /proc/$pid/status /proc/$pid/io"
    done
    grep -s -H -E "$lines" $host $processes
}
data=$1
wal=$2
loop=$3
shift 3
trap 'sample "$@"; kill "$!" 2>/dev/null; exit 0' TERM
echo "wall $(date +%s.%N)"
{
    tell_devices data "$data"
    tell_devices wal "$wal"
} 2>/dev/null
# without the two programs that a sample starts below; what the user's environment says to perl is not for this one
unset PERL5OPT PERL5LIB PERL_UNICODE PERLIO
if [ -n "$loop" ] && [ -n "$listed" ] && perl -Mstrict -e 1 2>/dev/null; then
    exec perl -e "$loop" "$0" "$lines" "$host" "$@"
fi
# a session that has just connected is soon seen, and in a run of a second twice: else nobody knows what it used
pause=0.25
while :; do
    sample "$@"
    sleep "$pause" &
    wait "$!"
    case $pause in 0.25) pause=0.5 ;; *) pause=1 ;; esac
done 2>/dev/null
