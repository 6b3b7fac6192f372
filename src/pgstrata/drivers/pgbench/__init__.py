"""pgbench as a driver: `driver` composes its command and collects its files, `parse` reads what it wrote."""
