"""The Linux kernel's counters of the server's host: `sampler` captures /proc, `snapshot` and `parse` read it."""
