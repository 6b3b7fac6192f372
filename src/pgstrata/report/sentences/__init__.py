"""Findings in words: verdicts, names, factors, controls, doubts, causes and limits."""
