"""What is done with the rights of root where others may have a say: in one room, so that it can be made safe there.

`files` is what this process does itself on this machine: folders, files, locks, owners. `commands` composes what a host
is told to do by a shell: mounts, devices, groups, owners there. Each of them is a whole operation, so that nothing has
to be looked at first and relied upon afterwards. What is made, and when, belongs to the rooms above.
"""
