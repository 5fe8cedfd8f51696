"""First-order primitives, by subject; ``saem.ops.families`` says what members of each share."""
