"""In what is a function's device list written down for other machines?

Functions stay in this process, so nothing is; libraries name the type of the list.
"""

from saem._jaxlib import DeviceList

__all__ = ["DeviceList"]
