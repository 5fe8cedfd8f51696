"""First-order primitives, by subject.  ``saem.ops.families`` says what the members of each share."""
