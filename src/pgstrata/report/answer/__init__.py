"""The answer of a study as a document: its headlines, cells, causes, charts, and where it was measured."""
