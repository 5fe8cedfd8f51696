"""Branches and loops: programs that a program runs conditionally or many times."""
