# The far side of hosts/shell.py, for dash, bash and other POSIX shells. It is sent through the shell's standard input.
#
# An exchange sets door_nonce, calls one function and gets one frame:
#     NONCE> standard output NONCE=CODE <newline> standard error NONCE<
# The nonce is 128 random bits that no program gets to know, so that any binary content can lie in between.
# Lines are read with the builtin `read`, which takes no byte too many: what follows a request is content for `head`.

umask 077
cd /
LC_ALL=C.UTF-8
export LC_ALL
unset LANGUAGE door_nonce door_go door_tmp door_line door_script door_user door_path door_in door_last
# Writing to a coordinator that has gone must not end the shell before it has cleaned up.
trap '' PIPE
trap 'exit 1' HUP INT TERM
trap door_leave EXIT
exec 3>&1

# ------------------------------------------------------------------------------------------ frames

door_end() { # code, file with standard error
    printf '%s=%s\n' "$door_nonce" "$1"
    [ -s "$2" ] && cat "$2"
    printf '%s<\n' "$door_nonce"
}

door_do() { # a command or function, with arguments
    printf '%s>' "$door_nonce"
    "$@" 2>"$door_tmp/err"
    door_end "$?" "$door_tmp/err"
}

door_feed() { # number of bytes, file: they are taken from the door's input even if they cannot be kept
    head -c "$1" | { cat >"$2" || { cat >/dev/null; false; }; }
}

door_loop() { # the line that ends a request
    door_go=$1
    door_hello
    while IFS= read -r door_line; do
        if [ "$door_line" = "$door_go" ]; then
            eval "$door_script"
            door_script=
        else
            door_script="$door_script$door_line
"
        fi
    done
    exit 0
}

door_hello() { # first contact: what is missing, who we are
    door_missing=
    for door_line in cat chmod date df env head id mkdir mktemp mv rm setsid tail; do
        command -v "$door_line" >/dev/null 2>&1 || door_missing="$door_missing $door_line"
    done
    if [ -z "$door_missing" ]; then
        env --default-signal true 2>/dev/null || door_missing=' env--default-signal'
        door_tmp=$(mktemp -d "${TMPDIR:-/tmp}/pgstrata-door.XXXXXX" 2>/dev/null || mktemp -d /tmp/pgstrata-door.XXXXXX)
        door_user=$(id -un 2>/dev/null || id -u)
        case $door_user in
            '' | *[!A-Za-z0-9._-]* | [0-9]*) ;;
            *) [ -w "$HOME" ] || eval "HOME=~$door_user"; USER=$door_user LOGNAME=$door_user; export HOME USER LOGNAME ;;
        esac
    fi
    printf '%s>%s\n%s\n%s\n%s\n' "$door_nonce" "$$" "$door_user" "$door_tmp" "$door_missing"
    door_end 0 /dev/null
}

door_leave() { # at the end of the door's input, however the coordinator ended
    [ -n "$door_tmp" ] || return 0
    # Whoever wants to register a process from here on cannot, and ends it instead.
    mv -- "$door_tmp" "$door_tmp.gone" 2>/dev/null
    for door_line in "$door_tmp.gone"/job.*; do
        [ -f "$door_line" ] || continue
        [ -f "$door_tmp.gone/done.${door_line##*.}" ] && continue
        IFS=' ' read -r door_pid door_signal <"$door_line" && door_kill "$door_signal" "$door_pid"
    done
    rm -rf -- "$door_tmp.gone"
}

# --------------------------------------------------------------------------------------- processes

door_kill() { # signal, process id or minus the id of a group
    # A group exists from the moment on in which setsid has run.
    kill -s "$1" -- "$2" 2>/dev/null || kill -s "$1" -- "${2#-}" 2>/dev/null || return 0
    case $1 in
        TERM | INT | QUIT) kill -s CONT -- "$2" 2>/dev/null ;;
    esac
    return 0
}

door_found() { # program: whether it can be started; what is wrong with it stands in door_why
    door_why=missing
    case $1 in
        */*)
            [ -e "$1" ] || return 1
            door_why=refused
            [ -x "$1" ] && [ ! -d "$1" ]
            ;;
        *)
            # The PATH is the program's own, if it is given one.
            if [ -n "$door_path" ]; then
                (PATH=$door_path && command -v "$1" >/dev/null 2>&1)
            else
                command -v "$1" >/dev/null 2>&1
            fi
            ;;
    esac
}

door_ready() { # prepares the guard of a program; says why not and ends, if it cannot be started
    trap '' HUP TERM
    door_job=$door_tmp/job.$door_id
    if ! door_setup 2>"$door_base.err"; then
        door_refuse folder
    elif ! door_found "$door_program"; then
        door_refuse "$door_why"
    elif ! { true <"$door_in" && true >>"$door_out" && true >>"$door_err"; } 2>"$door_base.err"; then
        door_refuse output
    fi
}

door_start() { # words: sets door_child
    # A background job of a shell ignores INT and QUIT for ever; env gives its program all signals back.
    setsid env --default-signal "$@" <"$door_in" >>"$door_out" 2>>"$door_err" 3>&- &
    door_child=$!
}

door_refuse() { # why
    printf '%s>' "$door_nonce"
    door_end "$1" "$door_base.err"
    rm -f -- "$door_base".*
    exit 0
}

door_run() { # identity; then the words
    # The frame is written by a guard, so that the door hears the coordinator (or its death) meanwhile.
    door_id=$1
    shift
    door_base=$door_tmp/run.$door_id
    door_out=$door_base.out door_err=$door_base.err
    {
        door_ready
        door_start "$@"
        printf '%s KILL\n' "-$door_child" >"$door_job" || door_kill KILL "-$door_child"
        wait "$door_child"
        door_line=$?
        printf '%s>' "$door_nonce"
        [ -s "$door_out" ] && cat "$door_out"
        door_end "$door_line" "$door_err"
        rm -f -- "$door_base".* "$door_job"
    } &
    # The last run's guard may still be tidying up.
    [ -z "$door_last" ] || wait "$door_last"
    door_last=$!
}

door_await_job() { # until the job is registered, which takes milliseconds unless the machine is very busy
    door_count=0
    until [ -s "$door_job" ] || [ "$door_count" -ge 1000000 ]; do
        door_count=$((door_count + 1))
    done
}

door_stop_run() { # identity; without a frame: the run's own frame follows
    door_job=$door_tmp/job.$1
    door_await_job
    [ -f "$door_job" ] || return 0
    IFS=' ' read -r door_pid door_signal <"$door_job" && door_kill "$door_signal" "$door_pid"
}

door_spawn() { # identity, signal; then the words
    door_id=$1 door_signal=$2
    shift 2
    door_base=$door_tmp/spawn.$door_id
    {
        door_ready
        # A signal that came before the program has its signals back would be lost: only then it is registered.
        door_start sh -c 'printf "%s\n" "$$ $1" >"$0" && shift && exec env "$@"' "$door_job" "$door_signal" "$@"
        door_await_job
        printf '%s>%s' "$door_nonce" "$door_child"
        door_end 0 /dev/null
        exec </dev/null >/dev/null 2>&1 3>&-
        wait "$door_child"
        door_line=$?
        # The CPU time of this guard's only child, in its fields cutime and cstime.
        IFS= read -r door_stat </proc/self/stat
        printf '%s\n%s\nend\n' "$door_line" "$door_stat" >"$door_tmp/done.$door_id"
    } &
}

door_poll() { # identity: nothing while it runs
    [ -f "$door_tmp/done.$1" ] || return 0
    while IFS= read -r door_line; do
        printf '%s\n' "$door_line"
    done <"$door_tmp/done.$1"
}

door_signal() { # identity, signal, process id or minus the id of a group
    [ -f "$door_tmp/done.$1" ] || door_kill "$2" "$3"
}

door_alive() { # process id
    IFS= read -r door_line 2>/dev/null <"/proc/$1/stat" || return 1
    # What has ended and was not waited for holds nothing.
    case ${door_line##*) } in
        Z* | X*) return 1 ;;
    esac
}

door_clock() {
    date +%s.%N
    IFS=' ' read -r door_line door_stat </proc/uptime
    printf '%s\n' "$door_line"
}

# ------------------------------------------------------------------------------------------- files

door_files() { # paths: the numbers of those that can be read, then their contents, each after a separator
    printf '%s' "$door_nonce" >"$door_tmp/separator"
    door_count=$# door_line=0
    while [ "$door_line" -lt "$door_count" ]; do
        if [ -r "$1" ] && [ ! -d "$1" ]; then
            set -- "$@" "$door_tmp/separator" "$1"
            printf '%s ' "$door_line"
        fi
        shift
        door_line=$((door_line + 1))
    done
    [ $# -eq 0 ] || cat -- "$@"
}

door_matching() { # glob
    IFS=
    cat -- $1
    unset IFS
}

door_write() { # number of bytes, file beside, file, mode
    door_feed "$1" "$2" && { [ "$4" = 600 ] || chmod "$4" -- "$2"; } && mv -fT -- "$2" "$3" && return
    rm -f -- "$2" 2>/dev/null
    return 1
}

door_list() { # folder: names, each ended by a NUL
    [ -d "$1" ] || return 0
    [ -r "$1" ] && [ -x "$1" ] || { printf 'Permission denied\n' >&2; return 1; }
    for door_line in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        if [ -e "$door_line" ] || [ -L "$door_line" ]; then
            printf '%s\0' "${door_line##*/}"
        fi
    done
}

door_make() { # folder, umask, mode if that cannot be told by the umask
    [ -d "$1" ] && return
    (umask "$2" && mkdir -p -- "$1") && { [ -z "$3" ] || chmod "$3" -- "$1"; }
}

door_rename() { # source, target
    if [ -d "$2" ] && [ ! -L "$2" ]; then
        printf 'Is a directory\n' >&2
        return 1
    fi
    mv -fT -- "$1" "$2"
}

door_free() { # path
    door_line=$1
    until [ -d "$door_line" ]; do
        door_line=${door_line%/*}
        [ -n "$door_line" ] || door_line=/
    done
    df --output=avail -B1 -- "$door_line"
}
