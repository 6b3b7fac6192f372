"""On which CPUs server and client run, how much of them the server gets, and how fast they are."""

import re
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, Together, level_text, one_of, read_word
from pgstrata.experiment.needs import (
    SEVERAL_CPUS,
    HostLine,
    file_needed,
    group_line,
    programs_needed,
)
from pgstrata.experiment.values import TABLE, Scalar
from pgstrata.units import parse_ratio

_CPU_LIST: Final = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")
# NR_CPUS of x86 at most (arch/x86/Kconfig); no other architecture has more.
_MOST_CPUS: Final = 8192
_POLICY: Final = re.compile(r"other|batch|idle|(fifo|rr):([1-9]\d?)")
_POLICIES: Final = "other, batch, idle; fifo and rr need the limit rtprio for the server's user"
_FREQUENCY: Final = "/sys/devices/system/cpu/cpu0/cpufreq"
_GOVERNORS: Final = f"{_FREQUENCY}/scaling_available_governors"
_NO_SCALING: Final = "no frequency scaling here: a virtual machine, or no cpufreq driver"


def _read_cpus(value: Scalar) -> str:
    text = level_text(value).replace(" ", "")
    if isinstance(value, bool | float) or not _CPU_LIST.fullmatch(text):
        raise WrongValueError(
            f"{level_text(value)!r} is not a valid list of CPUs", 'write for example "0-3" or "0,2,4"'
        )
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) >= _MOST_CPUS or int(first) >= _MOST_CPUS:
            raise WrongValueError(f"{part} is not a CPU number", f"CPUs have the numbers 0 to {_MOST_CPUS - 1}")
        if last and int(last) < int(first):
            raise WrongValueError(f"the range {part} runs backwards", f'write "{last}-{first}"')
    return text


def _read_quota(value: Scalar) -> str:
    remedy = 'write CPUs or a share of one: 0.5 and "50 %" are half a CPU, 2 and "200 %" are two'
    try:
        cpus = parse_ratio(level_text(value))
    except ValueError as error:
        raise WrongValueError(f"{level_text(value)!r} is not a valid amount of CPU", remedy) from error
    if isinstance(value, bool) or not cpus >= 0.01:  # noqa: PLR2004 - the kernel takes no quota below 1 ms of 100 ms
        raise WrongValueError(f"{level_text(value)!r} is not a valid amount of CPU", f"{remedy}; at least 0.01")
    return f"{cpus:g}"


def _read_policy(value: Scalar) -> str:
    text = level_text(value).lower().replace(" ", "")
    if not _POLICY.fullmatch(text):
        remedy = 'write "other", "batch", "idle", "fifo:N" or "rr:N" with a priority N from 1, at most 99'
        raise WrongValueError(f"{level_text(value)!r} is not a scheduling policy", remedy)
    return text


CPU: Final = Layer(
    factors={
        "cpu": FactorKey(
            kind=TABLE,
            meaning="CPUs: server, client (lists such as 0-3), quota (CPUs), policy, governor, turbo.",
            wrong='{ server = "3-0" }',
            wrong_levels='{ quota = ["none"] }',
        )
    },
    keys={
        "cpu.server": LayerKey(
            _read_cpus, 'a list such as `"0-3,8"`: the CPUs that the server may use', Together.DIFFERENT
        ),
        "cpu.client": LayerKey(_read_cpus, "the same for the client", Together.DIFFERENT),
        "cpu.quota": LayerKey(
            _read_quota, 'CPUs that the server may use up: `0.5` or `"50 %"` is half of one', Together.BY_PERIODS
        ),
        "cpu.policy": LayerKey(
            _read_policy,
            '`"other"`, `"batch"`, `"idle"`, `"fifo:N"`, `"rr:N"`: how the server is scheduled',
            Together.DIFFERENT,
        ),
        "cpu.governor": LayerKey(read_word, "a governor of cpufreq, as the kernel calls it"),
        "cpu.turbo": LayerKey(one_of("on", "off"), '`"on"`, `"off"`'),
    },
    host=(
        HostLine(
            key="cpu.server, cpu.client",
            needs=(SEVERAL_CPUS, programs_needed("taskset")),
            note=lambda case: f"{case.abilities.cpus} CPUs",
            root=False,
        ),
        group_line("cpu.quota", "cpu", "CONFIG_CFS_BANDWIDTH"),
        HostLine(key="cpu.policy", needs=(programs_needed("chrt"),), note=lambda _: _POLICIES, root=False),
        HostLine(
            key="cpu.governor",
            needs=(file_needed(f"{_FREQUENCY}/scaling_governor", lack=_NO_SCALING, shown=(_GOVERNORS,)),),
            note=lambda case: ", ".join(case.abilities.files.get(_GOVERNORS, "").split()),
        ),
        HostLine(
            key="cpu.turbo",
            needs=(
                file_needed(
                    "/sys/devices/system/cpu/intel_pstate/no_turbo",
                    "/sys/devices/system/cpu/cpufreq/boost",
                    lack=_NO_SCALING,
                ),
            ),
        ),
    ),
)
