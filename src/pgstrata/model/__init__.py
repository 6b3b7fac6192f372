"""The nouns of the glossary as frozen values; everything else passes these around.

What belongs here: values without behaviour beyond simple derivations. No I/O, no parsing of files, no statistics.
Import from the module: only what is used is loaded.
"""
