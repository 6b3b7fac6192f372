"""The ports between the core and the world: Protocols, and the values that pass through them.

Implementations live in the rooms above (hosts, servers, datasets, layers, drivers, collectors, store, ...), which never
import each other. No implementation belongs here. Import from the module: only what is used is loaded.
"""
