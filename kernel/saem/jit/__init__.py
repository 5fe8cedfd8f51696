"""The jitted call: its signature, its stages, and library functions."""
