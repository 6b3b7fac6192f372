"""From the text of an experiment file to an `Experiment`, or to everything that is wrong with it, at once.

What belongs here: the file's structure and its JSON Schema (`schema`), the keys of environments (`registry`) and layers
(`layers`), the file's meaning (`parse`), settings that are chosen where the author gave none (`defaults`), and the file
that `pgstrata try` writes (`compose`). No I/O: whoever calls hands in the text, the machine's size and a way to read
the files that the text names.
"""
