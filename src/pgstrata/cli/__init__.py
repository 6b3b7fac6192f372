"""The command line: a thin face over `app`. Only this room prints.

Commands import what they need when they are called, so that `--help` costs no more than typer itself.
"""
