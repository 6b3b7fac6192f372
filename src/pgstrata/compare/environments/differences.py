"""Observed differences between environments that the experiment did not declare.

A fact may differ between two environments only where something that it follows from was asked for differently: a
server's build follows from the level of `server`, a setting from what was asked for it, and so on. Environments that
were asked for the same (a control and its original, say) are held to the same facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from pgstrata.compare.environments.spellings import unify_spelling
from pgstrata.model.doubts import DefaultsDiffer, Doubt, UndeclaredDifference
from pgstrata.model.experiment import Environment, Experiment
from pgstrata.model.server import Fingerprint

_SETTINGS: Final = "settings."

# Differ from start to start, name places, or repeat facts that stand elsewhere: none of them changes performance.
_VOLATILE: Final = frozenset(
    {
        "cluster_name", "config_file", "data_directory", "external_pid_file", "hba_file", "ident_file",
        "in_hot_standby", "krb_server_keyfile", "listen_addresses", "log_destination", "log_directory",
        "log_file_mode", "log_filename", "num_os_semaphores", "port", "server_version", "server_version_num",
        "shared_memory_size", "shared_memory_size_in_huge_pages", "syslog_facility", "syslog_ident",
        "unix_socket_directories", "unix_socket_directory", "unix_socket_group",
    }
)  # fmt: skip

# Facts that follow from how much memory a server asked for, which its settings say better; and what a group had used up
# when it was looked at, soon after the start.
_VOLATILE_FACTS: Final = frozenset(
    {"memory.huge_pages_used", "cpu.throttled", "limits.memory_used", "limits.memory_kills"}
)

# Settings that the server computes from others unless they are set.
_FOLLOWS_FROM: Final[Mapping[str, tuple[str, ...]]] = {
    "commit_timestamp_buffers": ("shared_buffers",),
    "huge_pages_status": ("huge_pages",),
    "io_max_concurrency": ("shared_buffers", "max_connections", "max_worker_processes", "max_wal_senders",
                           "autovacuum_worker_slots"),
    "subtransaction_buffers": ("shared_buffers",),
    "transaction_buffers": ("shared_buffers",),
    "wal_buffers": ("shared_buffers",),
}  # fmt: skip

# Settings that initdb fixes, by the beginning of their name.
_FIXED_BY_INITDB: Final = ("lc_", "default_text_search_config", "server_encoding", "wal_segment_size", "data_checksums")

Asked = tuple[object, ...]


def undeclared_differences(environments: Mapping[str, Fingerprint], experiment: Experiment) -> tuple[Doubt, ...]:
    """Doubts about facts that differ although nothing that was asked for explains it.

    Settings (and options of initdb) that nobody set and that differ only between servers, or exist in some servers
    only, are the servers' own defaults: they come together in one doubt, which only counts the latter
    (`exclusive_settings` names them). Values that majors spell differently and that mean the same do not differ.

    Args:
        environments: what was observed, by environment name; environments without a fingerprint are left out, and so
            is an environment's missing fact.
        experiment: what was asked for.

    Returns:
        One `undeclared_difference` per fact, sorted by its name, then at most one `defaults_differ`.
    """
    known = [environment for environment in experiment.environments if environment.name in environments]
    facts = {environment.name: environments[environment.name].facts for environment in known}
    names = sorted({name for observed in facts.values() for name in observed if not _is_left_out(name)})
    undeclared: list[Doubt] = []
    defaults: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for name in names:
        observed = [
            (environment, facts[environment.name][name]) for environment in known if name in facts[environment.name]
        ]
        meant = [(environment, _meaning(name, value, facts[environment.name])) for environment, value in observed]
        if _is_explained(meant, name, allow_defaults=False):
            continue
        if _is_explained(meant, name, allow_defaults=True):
            own = ((each.server.text, value) for each, value in observed if _is_default(each, name))
            defaults[_short(name)] = _find_holders(own)
        else:
            holders = _find_holders((environment.name, value) for environment, value in observed)
            undeclared.append(UndeclaredDifference(fact=name, holders=holders))
    exclusive = {servers: len(names) for servers, names in exclusive_settings(environments, experiment)}
    if defaults or exclusive:
        return (*undeclared, DefaultsDiffer(settings=defaults, exclusive=exclusive))
    return tuple(undeclared)


def _is_left_out(name: str) -> bool:
    """What was read back of the settings asked for stands among all settings, where its spelling is understood."""
    return is_volatile(name) or name.startswith("asked.")


def _meaning(name: str, value: str, facts: Mapping[str, str]) -> str:
    if not name.startswith(_SETTINGS):
        return value
    return unify_spelling(_short(name), value, facts.get("server.version_num", ""))


def _is_explained(observed: Iterable[tuple[Environment, str]], name: str, *, allow_defaults: bool) -> bool:
    """Whether environments that were asked for the same, as far as `name` follows from it, have the same value.

    With `allow_defaults` each server may have its own value where none was asked for.
    """
    values: dict[Asked, str] = {}
    for environment, value in observed:
        asked = _asked(environment, name)
        key = (*asked, environment.server.text) if allow_defaults and _is_default(environment, name) else asked
        if values.setdefault(key, value) != value:
            return False
    return True


def _asked(environment: Environment, name: str) -> Asked:
    """Everything that was asked for and that the fact may follow from; host layers may show in any fact of a host."""
    family, _, rest = name.partition(".")
    match family:
        case "server":
            return (environment.server.text,)
        case "connection":
            return (environment.connection,)
        case "settings":
            return _asked_for_setting(environment, rest)
        case "initdb":
            return _asked_of_initdb(environment) if rest == "data_checksums" else (environment.initdb.get(rest),)
        case "host" | "kernel" | "boot" | "memory" | "sysctl" | "cpu" | "limits" | "storage":
            return (environment.host, *sorted(environment.layers.items()))
        case "client":
            return (environment.client_hosts,)
        case _:
            return ()


def _asked_for_setting(environment: Environment, setting: str) -> Asked:
    asked: list[object] = [environment.settings.get(name) for name in (setting, *_FOLLOWS_FROM.get(setting, ()))]
    if setting.startswith(_FIXED_BY_INITDB):
        asked += _asked_of_initdb(environment)
    # a unix socket has no keepalives: the server shows 0 for them
    if setting.startswith(("ssl", "tcp_")):
        asked.append(environment.connection)
    if setting.startswith("huge_page"):
        asked.append(environment.layers.get("pages"))
    return tuple(asked)


def _asked_of_initdb(environment: Environment) -> Asked:
    return (environment.checksums, *sorted(environment.initdb.items()))


def _is_default(environment: Environment, name: str) -> bool:
    """Whether the fact is a setting or an option of initdb that the environment does not set."""
    family, _, short = name.partition(".")
    asked = {"settings": environment.settings, "initdb": environment.initdb}.get(family)
    return asked is not None and short not in asked


def exclusive_settings(
    environments: Mapping[str, Fingerprint], experiment: Experiment
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Settings that nobody set and that only some of the servers have, as pairs of those servers and the names.

    Args:
        environments: what was observed, by environment name.
        experiment: what was asked for.
    """
    known = [environment for environment in experiment.environments if environment.name in environments]
    having: dict[str, set[str]] = defaultdict(set)
    for environment in known:
        found = (name for name in environments[environment.name].facts if name.startswith(_SETTINGS))
        having[environment.server.text].update(name for name in found if not is_volatile(name))
    # A server of which no setting was observed at all tells nothing about which ones it has.
    having = defaultdict(set, {text: names for text, names in having.items() if names})
    exclusive: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in sorted(set().union(*having.values())):
        servers = tuple(text for text, names in having.items() if name in names)
        if len(servers) < len(having) and all(_is_default(environment, name) for environment in known):
            exclusive[servers].append(_short(name))
    return tuple((servers, tuple(names)) for servers, names in exclusive.items())


def is_volatile(name: str) -> bool:
    """Whether a fact may differ between two starts of one environment without any meaning for its performance."""
    return name in _VOLATILE_FACTS or (name.startswith(_SETTINGS) and _short(name) in _VOLATILE)


def _short(name: str) -> str:
    return name.partition(".")[2]


def _find_holders(observed: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    """Who has each value, each once."""
    holders: dict[str, dict[str, None]] = defaultdict(dict)
    for holder, value in observed:
        holders[value][holder] = None
    return {value: tuple(names) for value, names in holders.items()}
