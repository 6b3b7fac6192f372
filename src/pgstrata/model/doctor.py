"""What an examination of a host found: which layers can be factors there, what measuring costs, how quiet it is."""

from dataclasses import dataclass
from enum import StrEnum

from pgstrata.units import Unit


class Possible(StrEnum):
    """Whether something can be a factor on a host for a user."""

    YES = "yes"
    NOT_FOR_USER = "not for this user"
    NOT_ON_HOST = "not on this host"


class Fitness(StrEnum):
    """Whether a host is fit for measuring."""

    YES = "yes"
    DOUBTFUL = "with doubts"
    NO = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFinding:
    """One factor: `key` as an experiment writes it, `note` in a phrase what is there or what would make it possible."""

    layer: str
    key: str
    possible: Possible
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing that was looked at or measured.

    `value` in base units where it is a number, else None; `text` for people; `doubt` why it disturbs measuring;
    `failure` why there is nothing, with what helps.
    """

    name: str
    title: str
    text: str = ""
    value: float | None = None
    unit: Unit | None = None
    doubt: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elevated:
    """One thing that pgstrata would do with sudo for a factor: `what` is changed, and the `programs` that do it.

    `do` and `undo` are the commands, with sample values where the real ones depend on the experiment.
    """

    key: str
    what: str
    programs: tuple[str, ...]
    do: tuple[str, ...]
    undo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A host as one user finds it. `unfit` has the reasons why nothing can be measured at all.

    `elevated` is what would be done with sudo there, for the factors that need it; nothing for root.
    """

    host: str
    user: str
    layers: tuple[LayerFinding, ...]
    probes: tuple[Probe, ...]
    unfit: tuple[str, ...] = ()
    elevated: tuple[Elevated, ...] = ()

    @property
    def possible(self) -> int:
        """How many of the factors are possible."""
        return sum(finding.possible is Possible.YES for finding in self.layers)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What disturbs measuring, in the order of the probes."""
        return tuple(probe.doubt for probe in self.probes if probe.doubt)

    @property
    def fitness(self) -> Fitness:
        """Unfit, doubtful or fit."""
        if self.unfit:
            return Fitness.NO
        return Fitness.DOUBTFUL if self.doubts else Fitness.YES
