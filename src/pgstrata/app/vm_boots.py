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

    Only the data disk keeps anything of an earlier boot. `tell` is called with what is being waited for, `gone` when a
    connection has been replaced.
    """

    spec: HostSpec
    hosts: StudyHosts
    tell: Callable[[str], None]
    gone: Callable[[], None]
    _visited: int = field(init=False, default=0)
    """The last boot that a visit has used, counted from 1."""

    def require(self, boots: Iterable[Boot]) -> None:
        """HostNotFitError if the image lacks one of these kernels, or QEMU cannot boot it as asked."""
        for boot in dict.fromkeys(boots):
            self.hosts.vm(self.spec).check(boot)

    def boot(self, boot: Boot, *, fresh: bool) -> None:
        """Boot the machine as asked, unless it already runs that way; `fresh`: also if a visit has used that boot.

        Raises:
            BootFailedError: it does not come up.
        """
        vm = self.hosts.vm(self.spec)
        if not vm.up or vm.boot != boot or (fresh and self._visited == vm.boots):
            self.tell(f"booting {self.spec.text}: {boot.text}, {boot.hardware}")
            self.gone()
            self.hosts.boot_vm(self.spec, boot)
        if fresh:
            self._visited = vm.boots

    def at_hand(self, _: Boot) -> bool:
        """Always: a virtual machine boots by itself."""
        return True

    def keeps(self, _: Entry) -> bool:
        """Never: boots of a virtual machine have no entry in a ledger."""
        return False

    def give_back(self) -> None:
        """Nothing to do: the machine is switched off at the end of the study."""
