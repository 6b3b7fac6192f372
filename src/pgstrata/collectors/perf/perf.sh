# Samples the stacks of the server's processes with perf until it is sent TERM, then writes them down, folded.
# $1: the postmaster's process id; $2: samples per second of CPU time; $3: a path for files of its own;
# $4: at most so much of samples, as 200M; $5: fold.awk. Lines that begin with "#" say how, or what is lacking.
# Stacks are unwound by DWARF: servers are built without frame pointers. Nothing is written to anybody's home.
postmaster=$1 data=$3 perf= stat=
unset DEBUGINFOD_URLS
# the programs of the system, whatever the path of the user who started pgstrata says
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin
export PATH
ulimit -v 8388608
name_processes() {
    for pid in $(cat "/proc/$postmaster/task/$postmaster/children" 2>/dev/null) "$postmaster"; do
        command=$(tr '\000\n' '  ' <"/proc/$pid/cmdline" 2>/dev/null) && echo "@ $pid $command"
    done
}
finish() {
    trap '' TERM
    [ -n "$perf" ] || exit 0
    kill -0 "$perf" 2>/dev/null || echo "# ended early"
    # what perf itself used so far: user and system time in ticks, proc_pid_stat(5)
    { read -r used <"/proc/$perf/stat"; } 2>/dev/null && set -- $used && echo "# ticks $((${14} + ${15}))"
    for pid in "$perf" $stat; do
        kill -s INT "$pid" 2>/dev/null
        wait "$pid"
    done
    name_processes >>"$data.names"
    if [ -s "$data" ] && perf script --no-inline -i "$data" -F pid,ip,sym,dso >"$data.text" 2>>"$data.err"; then
        perf evlist -i "$data" 2>/dev/null | sed -n 's/^\([a-z-]*clock[:a-z]*\).*/# event \1/p'
        cat "$data.names" "$data.text" | awk -v least=0.0005 "$fold"
        echo "# whole"
    else
        echo "# lacking $(tr -s '\n\t ' '   ' <"$data.err" | cut -c 1-300)"
    fi
    [ -z "$stat" ] || awk -F, '$1 ~ /^[0-9]+$/ { print "# count", $3, $1 }' "$data.stat"
    rm -f "$data" "$data.err" "$data.names" "$data.text" "$data.stat"
    exit 0
}
fold=$5
trap finish TERM
echo "# hertz $2"
if command -v perf >/dev/null 2>&1; then
    name_processes >"$data.names"
    pids=$(sed -n 's/^@ \([0-9]*\) .*/\1/p' "$data.names" | paste -sd , -)
    events=cycles,instructions,dTLB-load-misses
    perf record -q -N -F "$2" -e cpu-clock --call-graph dwarf,8192 --max-size="$4" -o "$data" -p "$pids" \
        >"$data.err" 2>&1 </dev/null &
    perf=$!
    case $(perf stat -x, -e "$events" -- true 2>&1) in
        *"not supported"* | *"not counted"* | *rror*) ;;
        *) perf stat -x, -e "$events" -o "$data.stat" -p "$pids" </dev/null >/dev/null 2>&1 & stat=$! ;;
    esac
else
    echo "# lacking perf is not installed"
fi
while :; do
    sleep 1 &
    wait $!
done
