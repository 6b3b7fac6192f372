# Counts the lines of pgbench's transaction logs by slice, on the client's host, where the logs are.
# marks: lines ROUND ARM START STOP (wall clock, nanoseconds); arm: whose slices count.
# Log: client transaction latency script epoch microseconds [...]; a word stands where there is no latency.
BEGIN {
    while ((getline line < marks) > 0) {
        split(line, field, " ")
        if (field[2] == arm) { slices++; round[slices] = field[1]; start[slices] = field[3] / 1000; stop[slices] = field[4] / 1000 }
    }
}
FNR == 1 { here = 1 }
{
    ended = $5 * 1000000 + $6
    while (here <= slices && ended > stop[here]) here++
    if (here > slices || ended < start[here]) { outside++; next }
    if ($3 !~ /^[0-9]/) { words[here]++; next }
    count[here]++
    # what was in flight while the client was paused has no latency of its own
    if (ended - $3 < start[here]) { carried[here]++; next }
    sum += $3
    bin[$3 < 1 ? 0 : int(log($3) * 100)]++
}
END {
    for (i = 1; i <= slices; i++)
        printf "slice %d %.0f %.0f %d %d %d\n", round[i], start[i], stop[i], count[i], carried[i], words[i]
    for (b in bin) printf "latency %d %d\n", b, bin[b]
    printf "total %.0f %d\n", sum, outside
}
