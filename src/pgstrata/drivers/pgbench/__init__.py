"""pgbench as a driver: `driver` composes its command and collects its files, `parse` reads what it wrote."""

from typing import Final

from pgstrata.model.driver import Capabilities

CAPABILITIES: Final = Capabilities(
    pausable=True,
    transaction_log=True,
    fixed_rate=True,
    skips_late=True,
    scripts=True,
    loads_data=True,
    placeable=True,
)
