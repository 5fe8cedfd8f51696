"""From jaxprs to running machine code: StableHLO text, executables, the compile cache, dispatch."""
