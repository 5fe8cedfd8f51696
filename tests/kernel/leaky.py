"""Where may a traced function leave a value?  One place of each kind, for ``test_leaks.py``.

Its fixture imports this file anew after it has left all older objects out of the garbage
collector's work: who holds a value is looked for among what the collector sees, so these places
must be younger, and a search among a whole run's objects would take seconds.

Read after: ``test_leaks.py``.
Invariant: nothing else imports it.
"""

from __future__ import annotations

kept = []
table = {}
one = None


class Net:
    """Something a user writes, with an attribute."""

    shared = None

    def __init__(self):
        self.hidden = None
        self.parts = {}


class Slotted:
    """The same without a dictionary."""

    __slots__ = ("held",)


net, slotted = Net(), Slotted()


def set_one(x):
    global one
    one = x


def forget():
    """Empty all places."""
    kept.clear(), table.clear(), net.parts.clear()
    net.hidden = Net.shared = slotted.held = None
    set_one(None)


# How a value is left, how it is found again, and what the place is called.
WAYS = {
    "a global": (set_one, lambda: one, "the global variable `one` of leaky"),
    "a list": (lambda x: kept.append([x]), lambda: kept[-1][0],
               "the global variable `kept[0][0]` of leaky"),
    "a dict": (lambda x: table.update(a=[1, x]), lambda: table["a"][1],
               "the global variable `table['a'][1]` of leaky"),
    "an attribute": (lambda x: setattr(net, "hidden", x), lambda: net.hidden,
                     "the global variable `net.hidden` of leaky"),
    "deep in an attribute": (lambda x: net.parts.update(w=(x,)), lambda: net.parts["w"][0],
                             "the global variable `net.parts['w'][0]` of leaky"),
    "a slot": (lambda x: setattr(slotted, "held", x), lambda: slotted.held,
               "the global variable `slotted.held` of leaky"),
    "a class": (lambda x: setattr(Net, "shared", x), lambda: Net.shared,
                "the class attribute `Net.shared`"),
}
