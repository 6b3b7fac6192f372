"""The machines of a visit: entered before anything is done on them, and released after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from pgstrata.conduct.observe import say_clocks
from pgstrata.conduct.rig import Rig, to_the_end
from pgstrata.model.experiment import Environment, HostSpec
from pgstrata.model.server import Fingerprint


@contextmanager
def targets_entered(rig: Rig, environments: Iterable[Environment], *, fresh: bool = False) -> Iterator[None]:
    """Have the machines of these environments up as they ask; within, `rig.server_hosts` says what they are.

    With `fresh`, one that is booted for its visits is in a boot that none of them has used yet.

    One that has been entered before stays as it is. What the machine of the baseline was when it was first entered is
    kept in the study, and so is how far away servers were from their clients; each environment's own fingerprint tells
    of its machine.

    Raises:
        HostLostError, HostNotFitError: a machine cannot be reached, or be what is asked for.
    """
    wanted: dict[HostSpec, list[Environment]] = {}
    for environment in environments:
        if environment.host not in rig.server_hosts:
            wanted.setdefault(environment.host, []).append(environment)
    with ExitStack() as leaving:
        for spec, here in wanted.items():
            leaving.callback(to_the_end, partial(_leave, rig, spec))
            _enter(rig, spec, here, fresh=fresh)
        yield


def _enter(rig: Rig, spec: HostSpec, environments: list[Environment], *, fresh: bool) -> None:
    target = rig.targets[spec]
    target.boot(environments, fresh=fresh)
    target.ready()
    found = rig.server_hosts[spec] = target.observe()
    if spec == rig.baseline:
        _keep_first(rig, "host", found.fingerprint)
    for name, link in found.links.items():
        if link.clocks is not None:
            _keep_first(rig, f"network/{name}", Fingerprint(facts=say_clocks(link.clocks)))


def _leave(rig: Rig, spec: HostSpec) -> None:
    rig.server_hosts.pop(spec, None)
    rig.targets[spec].release()


def _keep_first(rig: Rig, name: str, fingerprint: Fingerprint) -> None:
    if rig.store.fingerprint(name) is None:
        rig.store.keep_fingerprint(name, fingerprint)
