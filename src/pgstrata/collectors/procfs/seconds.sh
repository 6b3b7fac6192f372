# Writes down counters of the kernel and of the server's processes: at once, each second, and when sent TERM.
# $1: the postmaster's process id, or empty. Every sample begins with a line "@ SECONDS_SINCE_BOOT".
sample() {
    read -r now _ </proc/uptime
    echo "@ $now"
    children=
    # read fails at the end of a file without a line end, and has read it all the same
    [ -z "$postmaster" ] || read -r children <"/proc/$postmaster/task/$postmaster/children" || :
    for pid in $postmaster $children; do
        { read -r times <"/proc/$pid/schedstat"; } 2>/dev/null && echo "sched $pid $times"
    done
}
postmaster=$1
trap 'sample; exit 0' TERM
while :; do
    sample
    sleep 1 &
    wait $!
done 2>/dev/null
