"""Bundles: a study as one portable file, which is checked completely before anything of it is used."""
