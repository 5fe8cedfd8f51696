"""Functions with their own derivative rules, checkpointing, closure conversion and solves."""
