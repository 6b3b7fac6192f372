"""Booting another machine into a kernel once: the kernels that it has, its boot loaders, the reboot and its outcome.

This is for machines that ssh reaches. Virtual machines that pgstrata makes belong to `pgstrata.vms`.
"""
