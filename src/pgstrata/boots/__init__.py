"""Which kernel a machine boots next: kernels that are there, boot loaders, the reboot itself and what came of it.

Here belongs how a machine that stays where it is gets from one kernel to another. Machines that pgstrata itself makes
are somebody else's.
"""
