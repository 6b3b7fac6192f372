"""Bundles: a study as one portable file, which is checked as a whole before anything of it is used."""
