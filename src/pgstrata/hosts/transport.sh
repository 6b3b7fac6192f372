# The far side of hosts/shell.py, for dash, bash and other POSIX shells. It is sent through the shell's standard input.
#
# An exchange sets transport_nonce, calls one function and gets one frame:
#     NONCE> standard output NONCE=CODE <newline> standard error NONCE<
# The nonce is 128 random bits that no program gets to know, so that any binary content can lie in between.
# Lines are read with the builtin `read`, which takes no byte too many: what follows a request is content for `head`.

umask 077
ulimit -c 0
cd /
LC_ALL=C.UTF-8
export LC_ALL
unset LANGUAGE transport_nonce transport_go transport_top transport_tmp transport_line transport_script transport_user transport_path transport_in transport_last
# Writing to a coordinator that has gone must not end the shell before it has cleaned up.
trap '' PIPE
trap 'exit 1' HUP INT TERM
trap transport_leave EXIT
exec 3>&1

# ------------------------------------------------------------------------------------------ frames

transport_end() { # code, file with standard error
    printf '%s=%s\n' "$transport_nonce" "$1"
    [ -s "$2" ] && transport_show "$2"
    printf '%s<\n' "$transport_nonce"
}

transport_show() { # files: of each as much as the coordinator takes, and a byte more to tell it of the rest
    head -q -c "$((transport_most + 1))" -- "$@"
}

transport_do() { # a command or function, with arguments
    printf '%s>' "$transport_nonce"
    "$@" 2>"$transport_tmp/err"
    transport_end "$?" "$transport_tmp/err"
}

transport_feed() { # number of bytes, file: they are taken from the transport's input even if they cannot be kept
    head -c "$1" | { cat >"$2" || { cat >/dev/null; false; }; }
}

transport_loop() { # the line that ends a request
    transport_go=$1
    transport_hello
    while IFS= read -r transport_line; do
        if [ "$transport_line" = "$transport_go" ]; then
            eval "$transport_script"
            transport_script=
        else
            transport_script="$transport_script$transport_line
"
        fi
    done
    exit 0
}

transport_hello() { # first contact: what is missing, who we are
    transport_missing=
    for transport_line in cat chmod date dd df env head id mkdir mktemp mv rm setsid stat; do
        command -v "$transport_line" >/dev/null 2>&1 || transport_missing="$transport_missing $transport_line"
    done
    if [ -z "$transport_missing" ]; then
        env --default-signal true 2>/dev/null || transport_missing=' env--default-signal'
        # Everybody sees the name of the first folder in /tmp; to that of the second nobody else can put another.
        transport_top=$(mktemp -d "${TMPDIR:-/tmp}/pgstrata-transport.XXXXXX" 2>/dev/null || mktemp -d /tmp/pgstrata-transport.XXXXXX) || exit 1
        transport_tmp=$transport_top/work
        mkdir -- "$transport_tmp" || exit 1
        transport_user=$(id -un 2>/dev/null || id -u)
        case $transport_user in
            '' | *[!A-Za-z0-9._-]* | [0-9]*) ;;
            *) [ -w "$HOME" ] || eval "HOME=~$transport_user"; USER=$transport_user LOGNAME=$transport_user; export HOME USER LOGNAME ;;
        esac
    fi
    printf '%s>%s\n%s\n%s\n%s\n' "$transport_nonce" "$$" "$transport_user" "$transport_tmp" "$transport_missing"
    transport_end 0 /dev/null
}

transport_leave() { # at the end of the transport's input, however the coordinator ended
    # A cleaner of /tmp may have removed the folder, and another user put one of that name there.
    [ -n "$transport_top" ] && [ -O "$transport_top" ] && [ ! -L "$transport_top" ] || return 0
    # Whoever wants to register a process from here on cannot, and ends it instead.
    mv -T -- "$transport_tmp" "$transport_top/gone" 2>/dev/null
    for transport_line in "$transport_top/gone"/job.*; do
        [ -f "$transport_line" ] || continue
        [ -f "$transport_top/gone/done.${transport_line##*.}" ] && continue
        IFS=' ' read -r transport_pid transport_signal <"$transport_line" && transport_kill "$transport_signal" "$transport_pid"
    done
    rm -rf -- "$transport_top"
}

# --------------------------------------------------------------------------------------- processes

transport_kill() { # signal, process id or minus the id of a group
    # A group exists from the moment on in which setsid has run.
    kill -s "$1" -- "$2" 2>/dev/null || kill -s "$1" -- "${2#-}" 2>/dev/null || return 0
    case $1 in
        TERM | INT | QUIT) kill -s CONT -- "$2" 2>/dev/null ;;
    esac
    return 0
}

transport_found() { # program: whether it can be started; what is wrong with it stands in transport_why
    transport_why=missing
    case $1 in
        */*)
            [ -e "$1" ] || return 1
            transport_why=refused
            [ -x "$1" ] && [ ! -d "$1" ]
            ;;
        *)
            # The PATH is the program's own, if it is given one.
            if [ -n "$transport_path" ]; then
                (PATH=$transport_path && command -v "$1" >/dev/null 2>&1)
            else
                command -v "$1" >/dev/null 2>&1
            fi
            ;;
    esac
}

transport_keep() { # a password file from standard input, for the program alone: nobody else finds it by a name
    # what fails in exec would end the guard without a word
    true >"$transport_base.pass" && exec 4<>"$transport_base.pass" && rm -f -- "$transport_base.pass" && cat >&4 || return 1
    PGPASSFILE=/proc/self/fd/4
    export PGPASSFILE
}

transport_ready() { # prepares the guard of a program; says why not and ends, if it cannot be started
    trap '' HUP TERM
    transport_job=$transport_tmp/job.$transport_id
    if ! transport_setup 2>"$transport_base.err"; then
        transport_refuse folder
    elif ! transport_found "$transport_program"; then
        transport_refuse "$transport_why"
    elif ! { true <"$transport_in" && true >>"$transport_out" && true >>"$transport_err"; } 2>"$transport_base.err"; then
        transport_refuse output
    fi
}

transport_start() { # words: sets transport_child
    # A background job of a shell ignores INT and QUIT for ever; env gives its program all signals back.
    setsid env --default-signal "$@" <"$transport_in" >>"$transport_out" 2>>"$transport_err" 3>&- &
    transport_child=$!
    exec 4>&-
}

transport_refuse() { # why
    printf '%s>' "$transport_nonce"
    transport_end "$1" "$transport_base.err"
    rm -f -- "$transport_base".*
    exit 0
}

transport_run() { # identity; then the words
    # The frame is written by a guard, so that the transport hears the coordinator (or its death) meanwhile.
    transport_id=$1
    shift
    transport_base=$transport_tmp/run.$transport_id
    transport_out=$transport_base.out transport_err=$transport_base.err
    {
        transport_ready
        transport_start "$@"
        printf '%s KILL\n' "-$transport_child" >"$transport_job" || transport_kill KILL "-$transport_child"
        wait "$transport_child"
        transport_line=$?
        printf '%s>' "$transport_nonce"
        [ -s "$transport_out" ] && transport_show "$transport_out"
        transport_end "$transport_line" "$transport_err"
        rm -f -- "$transport_base".* "$transport_job"
    } &
    # The last run's guard may still be tidying up.
    [ -z "$transport_last" ] || wait "$transport_last"
    transport_last=$!
}

transport_await_job() { # until the job is registered, which takes milliseconds unless the machine is very busy
    transport_count=0
    until [ -s "$transport_job" ] || [ "$transport_count" -ge 1000000 ]; do
        transport_count=$((transport_count + 1))
    done
}

transport_stop_run() { # identity; without a frame: the run's own frame follows
    transport_job=$transport_tmp/job.$1
    transport_await_job
    [ -f "$transport_job" ] || return 0
    IFS=' ' read -r transport_pid transport_signal <"$transport_job" && transport_kill "$transport_signal" "$transport_pid"
}

transport_spawn() { # identity, signal; then the words
    transport_id=$1 transport_signal=$2
    shift 2
    transport_base=$transport_tmp/spawn.$transport_id
    {
        transport_ready
        # A signal that came before the program has its signals back would be lost: only then it is registered.
        transport_start sh -c 'printf "%s\n" "$$ $1" >"$0" && shift && exec env "$@"' "$transport_job" "$transport_signal" "$@"
        transport_await_job
        printf '%s>%s' "$transport_nonce" "$transport_child"
        transport_end 0 /dev/null
        exec </dev/null >/dev/null 2>&1 3>&-
        wait "$transport_child"
        transport_line=$?
        # The CPU time of this guard's only child, in its fields cutime and cstime.
        IFS= read -r transport_stat </proc/self/stat
        printf '%s\n%s\nend\n' "$transport_line" "$transport_stat" >"$transport_tmp/done.$transport_id"
    } &
}

transport_poll() { # identity: nothing while it runs
    [ -f "$transport_tmp/done.$1" ] || return 0
    while IFS= read -r transport_line; do
        printf '%s\n' "$transport_line"
    done <"$transport_tmp/done.$1"
}

transport_signal() { # identity, signal, process id or minus the id of a group
    [ -f "$transport_tmp/done.$1" ] || transport_kill "$2" "$3"
}

transport_alive() { # process id
    IFS= read -r transport_line 2>/dev/null <"/proc/$1/stat" || return 1
    # What has ended and was not waited for holds nothing.
    case ${transport_line##*) } in
        Z* | X*) return 1 ;;
    esac
}

transport_clock() {
    date +%s.%N
    IFS=' ' read -r transport_line transport_stat </proc/uptime
    printf '%s\n' "$transport_line"
}

# ------------------------------------------------------------------------------------------- files

transport_read() { # file, number of bytes to leave out
    if [ -e "$1" ] && [ ! -d "$1" ]; then
        [ -f "$1" ] || { printf 'it is not an ordinary file\n' >&2; return 1; }
        [ "$(($(stat -L -c %s -- "$1") - $2))" -le "$transport_most" ] ||
            { printf 'larger than %s MiB\n' "$((transport_most >> 20))" >&2; return 1; }
    fi
    # Should another file be there by now: dd waits for no pipe, and takes no more than is asked for.
    dd if="$1" bs=65536 iflag=nonblock,fullblock,skip_bytes,count_bytes skip="$2" count="$((transport_most + 1))" status=none
}

transport_files() { # paths: the numbers of those that can be read, then their contents, each after a separator
    printf '%s' "$transport_nonce" >"$transport_tmp/separator"
    transport_count=$# transport_line=0
    while [ "$transport_line" -lt "$transport_count" ]; do
        if [ -r "$1" ] && [ -f "$1" ]; then
            set -- "$@" "$transport_tmp/separator" "$1"
            printf '%s ' "$transport_line"
        fi
        shift
        transport_line=$((transport_line + 1))
    done
    [ $# -eq 0 ] || transport_show "$@"
}

transport_matching() { # glob
    IFS=
    transport_show $1
    unset IFS
}

transport_write() { # number of bytes, file beside, file, mode
    transport_feed "$1" "$2" && { [ "$4" = 600 ] || chmod "$4" -- "$2"; } && mv -fT -- "$2" "$3" && return
    rm -f -- "$2" 2>/dev/null
    return 1
}

transport_list() { # folder: names, each ended by a NUL
    [ -d "$1" ] || return 0
    [ -r "$1" ] && [ -x "$1" ] || { printf 'Permission denied\n' >&2; return 1; }
    for transport_line in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        if [ -e "$transport_line" ] || [ -L "$transport_line" ]; then
            printf '%s\0' "${transport_line##*/}"
        fi
    done
}

transport_make() { # folder, umask, mode if that cannot be told by the umask
    [ -d "$1" ] && return
    (umask "$2" && mkdir -p -- "$1") && { [ -z "$3" ] || chmod "$3" -- "$1"; }
}

transport_rename() { # source, target
    if [ -d "$2" ] && [ ! -L "$2" ]; then
        printf 'Is a directory\n' >&2
        return 1
    fi
    mv -fT -- "$1" "$2"
}

transport_free() { # path
    transport_line=$1
    until [ -d "$transport_line" ]; do
        transport_line=${transport_line%/*}
        [ -n "$transport_line" ] || transport_line=/
    done
    df --output=avail -B1 -- "$transport_line"
}
