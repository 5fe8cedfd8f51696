"""Saem: an array engine to learn from, with JAX's public API."""

__saem__ = True
