# Folds the output of "perf script -F pid,ip,sym,dso" into lines "KIND;OUTERMOST;...;INNERMOST COUNT".
# Before it lines "@ PID COMMAND" name processes. Frames that are in less than a part of `least` of all samples
# are cut: their samples count for the frame that called them. Frames before a process's own work are left out.
function flush(   stack, first, i) {
    if (pid == "") return
    stack = (pid in kind) ? kind[pid] : "session"
    # how a process came to its work is the same in all, and lacks in stacks that were too deep to be copied whole
    first = (frame[depth] == "[unknown]" && depth > 1) ? depth - 1 : depth
    for (i = 2; i <= depth; i++)
        if (frame[i] ~ /^(ServerLoop|BackendStartup|postmaster_child_launch|BackendMain|PostmasterMain)$/) { first = i - 1; break }
    for (i = first; i > 0; i--) stack = stack ";" frame[i]
    count[stack]++
    total++
    pid = ""
    depth = 0
}
function kind_of(command) {
    if (match(command, /checkpointer|background writer|walwriter|wal writer|autovacuum|io worker|stats collector|logger|archiver|parallel worker|logical replication|walsender|startup/))
        return substr(command, RSTART, RLENGTH)
    return command ~ /^postgres:/ ? "session" : "postmaster"
}
/^@ / { known = $2; sub(/^@ [0-9]+ /, ""); kind[known] = kind_of($0); next }
/^#/ { next }
/^[ ]*$/ { flush(); next }
/^\t/ {
    name = $0
    sub(/^[ \t]*[0-9a-f]+ /, "", name)
    dso = ""
    if (match(name, / \([^()]*\)$/)) {
        dso = substr(name, RSTART + 2, RLENGTH - 3)
        name = substr(name, 1, RSTART - 1)
    }
    kernel = dso ~ /^\[.*\]$/ && dso !~ /^\[(vdso|unknown|heap|stack)/
    if (name == "[unknown]") { sub(/^.*\//, "", dso); name = dso ~ /^\[/ ? dso : "[" (dso == "" ? "unknown" : dso) "]" }
    # what compilers make of a function differs between builds
    while (sub(/\.(isra|part|constprop|cold|lto_priv)(\.[0-9]+)?$/, "", name)) { }
    gsub(/;/, ":", name)
    gsub(/[ \t]+/, "_", name)
    frame[++depth] = kernel ? name "_[k]" : name
    next
}
{ flush(); pid = $1 }
END {
    flush()
    for (stack in count) {
        parts = split(stack, part, ";")
        prefix = ""
        for (i = 1; i <= parts; i++) { prefix = prefix (i > 1 ? ";" : "") part[i]; inclusive[prefix] += count[stack] }
    }
    for (stack in count) {
        parts = split(stack, part, ";")
        prefix = kept = part[1]
        for (i = 2; i <= parts; i++) {
            prefix = prefix ";" part[i]
            if (inclusive[prefix] < least * total) break
            kept = prefix
        }
        folded[kept] += count[stack]
    }
    for (stack in folded) print stack, folded[stack]
}
