"""From jaxprs to running machine code: StableHLO text, devices, the compile cache, dispatch."""
