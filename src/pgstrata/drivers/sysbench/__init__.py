"""sysbench as a driver: `driver` composes its command and collects its files, `parse` reads what it wrote.

It is the client machine's own, found by its PATH: no build of PostgreSQL brings one. It could be stopped and continued,
but it counts nothing by slice, so that it is measured run by run.
"""

from typing import Final

from pgstrata.model.driver import Capabilities

NAME: Final = "sysbench"
"""Key of the driver, of its processes and of its sessions."""

CAPABILITIES: Final = Capabilities(
    pausable=False,
    transaction_log=False,
    fixed_rate=True,
    whole_rates=True,
    scripts=False,
    loads_data=True,
    shares_threads=False,
    profile=False,
    protocols=("simple", "prepared"),
)
