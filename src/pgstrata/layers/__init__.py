"""The layers of an environment: what each adds to the start of a server, and how it is observed from inside.

Starting and stopping the server itself is a layer too (`server`). What a workload does, and where data come from, does
not belong here.
"""
