"""A machine on which servers can run, with its transports open: this one, or another."""

from __future__ import annotations

from dataclasses import dataclass

from pgstrata.app.site import Site
from pgstrata.model.experiment import HostSpec
from pgstrata.ports.host import Host
from pgstrata.servers.places import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedHost:
    """A machine of a plan: `host` acts as the user that servers run as, maybe that of the site's transport."""

    spec: HostSpec
    site: Site
    host: Host

    @property
    def transport(self) -> Host:
        """As the user of pgstrata there."""
        return self.site.transport

    @property
    def places(self) -> Places:
        """Its folders, which need not be there yet."""
        return self.site.places
