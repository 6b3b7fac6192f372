"""Fixtures of answers, which are built at a desk."""

from desk import desk, module_desk

__all__ = ["desk", "module_desk"]
