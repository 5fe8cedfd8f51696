"""How does a jaxpr become machine code that runs?

StableHLO text, executables, the compile cache, dispatch.
"""
