"""Machines: run a command, move a file, look at the clock; nothing else.

All transports keep the same contract (`ports.Host`) and pass the same conformance tests (`testing.HostConformance`):
`local.LocalHost` works with Python's own means on this machine, `shell.ShellHost` through one `sh` behind a pipe, as
another user, `ssh.SshHost` through such a shell on another machine. What is run, and why, belongs to the rooms that
hold a host.

The first stays beside the second because a shell starts processes for what Python reads and writes itself, which takes
ten times as long and more (`ONLY=transports make bench`).
"""
