"""The boots of a virtual machine in a study: as a visit asks, each from the root image as it was built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pgstrata.app.study_hosts import StudyHosts
from pgstrata.model.boot import Boot
from pgstrata.model.changes import Entry
from pgstrata.model.experiment import HostSpec


@dataclass(slots=True, kw_only=True)
class VmBoots:
    """Boots a virtual machine, which `hosts` has open, whenever a visit needs that (as `HostBoots`).

    Nothing of an earlier boot is left but what lies on the data disk. `tell` says what is waited for; `gone` is called
    when a connection was replaced.
    """

    spec: HostSpec
    hosts: StudyHosts
    tell: Callable[[str], None]
    gone: Callable[[], None]
    _visited: int = field(init=False, default=0)
    """The last boot that a visit has used, counted from 1."""

    def require(self, boots: Iterable[Boot]) -> None:
        """HostNotFitError where the image has not one of these kernels, or QEMU cannot boot it so."""
        for boot in dict.fromkeys(boots):
            self.hosts.vm(self.spec).check(boot)

    def boot(self, boot: Boot, *, fresh: bool) -> None:
        """Have the machine up as asked; nothing is done where it is, unless a visit has used this boot before.

        Raises:
            BootFailedError: it does not come up.
        """
        vm = self.hosts.vm(self.spec)
        if not vm.up or vm.boot != boot or (fresh and self._visited == vm.boots):
            self.tell(f"booting {self.spec.text}: {boot.text}")
            self.gone()
            self.hosts.boot_vm(self.spec, boot)
        if fresh:
            self._visited = vm.boots

    def keeps(self, _: Entry) -> bool:
        """No entry of an earlier boot is there."""
        return False

    def give_back(self) -> None:
        """It is switched off with the study."""
