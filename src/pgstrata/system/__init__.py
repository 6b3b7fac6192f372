"""What is done with the rights of root where others may have a say: in one room, so that it can be made safe there.

`files` is what this process does itself on this machine: folders, files, locks, owners. The others compose what a host
is told to do by a shell: `storage` mounts and devices, `groups` control groups, `commands` folders, owners and locks
there. Each function is one operation, as whole as it can be made. What is made, and when, belongs to the rooms above.
"""
