"""Do pytrees behave as JAX's, and does a mismatch name the place?"""

from __future__ import annotations

import collections
import dataclasses
import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saem import tree, tree_util

Point = collections.namedtuple("Point", "x y")

# Evaluated on both sides, with the side's own tree, tree_util and the classes of CLASSES, which is
# text since structures print the names of their classes' modules: it runs as __main__ on both.
CLASSES = """
import collections, dataclasses, functools
Point = collections.namedtuple("Point", "x y")
OD, DD = collections.OrderedDict, collections.defaultdict

def show(x):  # repr, but the same on every version of Python
    if type(x) is OD: return f"OD{show(list(x.items()))}"
    if isinstance(x, functools.partial): return f"Partial{show((x.func, x.args, x.keywords))}"
    if type(x) in (list, tuple): return f"{type(x).__name__}[{', '.join(map(show, x))}]"
    return repr(x)

class Pair:
    def __init__(self, *parts): self.parts = parts
    def __repr__(self): return f"Pair{self.parts}"
tree_util.register_pytree_node(Pair, lambda p: (p.parts, "aux"), lambda aux, parts: Pair(*parts))

@tree_util.register_pytree_with_keys_class
class Keyed:
    def __init__(self, a): self.a = a
    def __repr__(self): return f"{type(self).__name__}({self.a})"
    def tree_flatten_with_keys(self): return ((tree_util.GetAttrKey("a"), self.a),), None
    @classmethod
    def tree_unflatten(cls, aux, children): return cls(*children)

@tree_util.register_pytree_node_class
class Plain(Keyed):
    def tree_flatten(self): return (self.a,), None

@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: int
    mode: str = tree.static(default="relu")

@dataclasses.dataclass
class Named:
    a: int
    b: int
    c: int = 3
tree_util.register_dataclass(Named, ["b"], ["a"], drop_fields=["c"])

@tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Fixed:
    v: int

nest = [None, (1,), {"b": 1, "a": 2}, OD(z=1, a=2), DD(int, z=1, a=2), Point(1, 2),
        Pair(3, Pair(4)), Keyed(5), Plain(6), Layer(7, "tanh"), Named(8, 9), Fixed(10),
        (), [], {}, "text"]
partial = tree_util.Partial(max, 3, key=abs)
add = lambda *xs: sum(xs)
words = lambda a, b: f"({a}{b})"
"""

QUESTIONS = """
tree.structure(nest)
tree.leaves(nest)
tree.leaves_with_path(nest)
tree.map(lambda x: [x], nest)
[tree_util.keystr(p) for p, _ in tree.leaves_with_path(nest)]
[tree_util.keystr(p, simple=True, separator="/") for p, _ in tree.leaves_with_path(nest)]
tree.leaves(nest, is_leaf=lambda x: x is None or isinstance(x, Pair))
tree.leaves_with_path(nest, is_leaf=lambda x: isinstance(x, dict))
tree.leaves_with_path(nest, is_leaf=lambda p, x: len(p) == 1, is_leaf_takes_path=True)
tree.map(add, [1, {"a": 2}], [3, {"a": 4}], [5, {"a": 6}])
tree.map(lambda a, b: (a, b), [1, 2], [None, (3, 4)])
tree.map_with_path(lambda p, x, y: (tree_util.keystr(p), x, y), {"a": [1, 2]}, {"a": [3, 4]})
tree.unflatten(tree.structure({"a": (1, 2), "b": None}), [5, 6])
tree.transpose(tree.structure([0, 0]), tree.structure((0, 0, 0)), [(1, 2, 3), (4, 5, 6)])
tree.transpose(tree.structure([0, 0]), None, [{"a": 1}, {"a": 2}])
tree.transpose(tree.structure({"a": 0, "b": 0}), tree.structure([0, 0]), ([1, 2], [3, 4]))
tree.reduce(words, list("abcde"))
tree.reduce(words, list("abc"), "0")
tree.reduce(words, [], 5)
[tree.reduce_associative(words, list("abcdefgh")[:n]) for n in range(1, 9)]
tree.reduce_associative(words, [], identity=3)
[tree.all([1, 0]), tree.all([]), tree.all([None, True], is_leaf=lambda x: x is None)]
tree.broadcast((1, 2), ([1, 2], {"a": 3}))
tree.broadcast((None, 2), ([1, None], 3), is_leaf=lambda x: x is None)
[tree_util.all_leaves([1, 2]), tree_util.all_leaves([1, [2]]), tree_util.all_leaves([None])]
tree_util.all_leaves([1, [2]], is_leaf=lambda x: x == [2])
[tree_util.flatten_one_level(x) for x in nest[:-1]]
[tree_util.flatten_one_level_with_keys(x) for x in nest[:-1] if not isinstance(x, Point)]
[tree_util.is_tree_node(type(x)) for x in nest] + [tree_util.is_tree_node(collections.deque)]
[tree_util.treedef_is_leaf(tree.structure(x)) for x in (1, None, (), [1])]
tree_util.treedef_children(tree.structure([1, {"a": 2}]))
tree_util.treedef_tuple([tree.structure([1]), tree.structure(2)])
tree.structure(nest).num_leaves
tree.structure(partial)
tree.leaves_with_path(partial)
(partial(-4), partial.args, partial.keywords, partial)
tree_util.Partial(partial, 4)(-5)
tree_util.Partial(functools.partial(max, 3), 4)(5)
len(tree.leaves(tree_util.Partial(partial, 4)))
tree.structure(tree_util.Partial(partial, 4)) == tree.structure(tree_util.Partial(partial, 5))
tree.structure(tree_util.Partial(max, 4)) == tree.structure(tree_util.Partial(max, 5))
tree.structure(tree_util.Partial(max, 4)) == tree.structure(tree_util.Partial(min, 4))
tree.structure(Layer(1)) == tree.structure(Layer(2, "tanh"))
tree.structure(Layer(1)) == tree.structure(Layer(2))
tree_util.keystr((3, "x", tree_util.FlattenedIndexKey(2)))
[repr(k) + str(k) for k in (tree_util.SequenceKey(1), tree_util.DictKey("a"))]
""".strip().splitlines()

# Here both must raise an error of the same builtin class.
REFUSALS = """
tree.map(add, [1, 2], [1])
tree.map(add, [1, {"x": 2}], [1, {"y": 3}])
tree.map(add, Point(1, 2), (1, 2))
tree.map(add, [1, None], [1, 2])
tree.map_with_path(add, {"a": [1, 2]}, {"a": [3]})
tree.unflatten(tree.structure([1, 2]), [1])
tree.unflatten(tree.structure([1, 2]), [1, 2, 3])
tree.transpose(tree.structure([0, 0]), tree.structure((0, 0)), [(1, 2, 3), (4, 5, 6)])
tree.transpose(tree.structure([0, 0]), None, [(1, 2, 3), (4, 5)])
tree.reduce(add, [])
tree.reduce_associative(add, [])
tree.broadcast((1, (2, 3)), ([1, 2], {"a": 3}))
tree.broadcast(None, [1])
tree.structure({1: 2, "a": 3})
tree_util.flatten_one_level(3)
tree_util.flatten_one_level_with_keys(3)
tree_util.register_pytree_node(Pair, lambda p: ((), None), lambda aux, parts: Pair())
tree_util.register_pytree_node(str, 1, 2)
tree_util.register_dataclass(int)
tree_util.register_dataclass(Named, ["a"])
tree_util.register_dataclass(Named, ["a"], ["b"])
tree_util.register_dataclass(Named, ["a", "w"], ["b", "c"])
tree_util.register_dataclass(Named, ["a", "b"], ["b", "c"])
tree_util.Partial(3)
""".strip().splitlines()

BUILTIN = ("TypeError", "ValueError", "IndexError", "KeyError", "RuntimeError")


@pytest.fixture(scope="module")
def ours():
    names = {"tree": tree, "tree_util": tree_util, "__name__": "__main__"}
    exec(CLASSES, names)
    return names


@pytest.fixture(scope="module")
def theirs(jax_oracle):
    source = CLASSES + (
        "\nanswers = []"
        "\nfor question in questions:"
        "\n    try: answers.append(show(eval(question)))"
        "\n    except Exception as e:"
        "\n        bases = [c.__name__ for c in type(e).__mro__]"
        "\n        answers.append(next(name for name in bases if name in builtin))"
        "\nresult = answers"
    )
    source = "from jax import tree, tree_util\n__name__ = '__main__'\n" + source
    questions = QUESTIONS + REFUSALS
    answers = jax_oracle.run(source, questions=questions, builtin=list(BUILTIN)).value
    return dict(zip(questions, answers, strict=True))


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_those_of_jax(ours, theirs, question):
    assert theirs[question] not in BUILTIN
    assert ours["show"](eval(question, ours)) == theirs[question]


@pytest.mark.parametrize("question", REFUSALS)
def test_refusals_are_those_of_jax(ours, theirs, question):
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        eval(question, ours)
    bases = [c.__name__ for c in type(caught.value).__mro__]
    assert next(name for name in bases if name in BUILTIN) == theirs[question]


DIFFERENCES = [
    ([1, 2], [1], "different lengths of list at key path\n    tree_map tree\n"
                  "different lengths of list: 2 and 1"),
    (
        {"w": [1, {"x": (2, 3)}]},
        {"w": [1, {"x": [2, 3]}]},
        "different types at key path\n    tree_map tree['w'][1]['x']\n"
        "different types: tuple and list",
    ),
    (
        [{"x": 2, "z": 0}],
        [{"y": 3, "z": 0}],
        "different pytree metadata at key path\n    tree_map tree[0]\n"
        "different pytree metadata: different keys: only the first tree has 'x'; "
        "only the other tree has 'y'",
    ),
    (Point(1, [2]), Point(1, 2), "tree_map tree.y\ndifferent types: list and int"),
    ([None], [0], "tree_map tree[0]\ndifferent types: None and int"),
    (
        collections.OrderedDict(a=1, b=2),
        collections.OrderedDict(b=2, a=1),
        "ordered ['a', 'b'] and ['b', 'a']",
    ),
    (
        collections.defaultdict(int, a=1),
        collections.defaultdict(str, a=1),
        "different pytree metadata",
    ),
    (tree_util.Partial(max, 1), tree_util.Partial(min, 1), "different pytree metadata"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "other", "words"), DIFFERENCES)
def test_a_mismatch_names_the_path_the_structures_and_the_difference(first, other, words):
    with pytest.raises(ValueError, match=r"pytree structure error") as caught:
        tree.map(lambda a, b: a, first, other)
    text = str(caught.value)
    assert words in text
    assert text.startswith("tree.C1: ")
    assert str(tree.structure(first)) in text
    assert str(tree.structure(other)) in text


def trees():
    def containers(children):
        return st.one_of(
            st.lists(children, max_size=3),
            st.lists(children, max_size=3).map(tuple),
            st.dictionaries(st.sampled_from("abc"), children, max_size=3),
            st.dictionaries(st.sampled_from("abc"), children, max_size=3).map(
                collections.OrderedDict
            ),
            st.builds(Point, children, children),
            st.builds(functools.partial(tree_util.Partial, max), children),
        )

    return st.recursive(st.none() | st.integers(), containers, max_leaves=12)


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, functools.partial):
        return a.func is b.func and same(a.args, b.args) and same(a.keywords, b.keywords)
    if isinstance(a, dict):
        return sorted(a) == sorted(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@given(trees())
def test_taken_apart_and_put_together_is_the_same(value):
    flat, treedef = tree.flatten(value)
    assert same(tree.unflatten(treedef, flat), value)
    assert all(type(leaf) is int for leaf in flat)
    assert [leaf for _, leaf in tree.leaves_with_path(value)] == flat
    assert tree.structure(tree.map(str, value)) == treedef


@given(trees(), trees())
def test_structures_differ_exactly_where_a_difference_is_named(a, b):
    from_core = tree_util.tree_structure(a)
    try:
        from_core.flatten_up_to(b)
        prefix = True
    except ValueError:
        prefix = False
    if prefix:
        tree.map(lambda x, y: x, a, b)
    else:
        with pytest.raises(ValueError, match=r"tree\.C1.*at key path"):
            tree.map(lambda x, y: x, a, b)


@pytest.mark.parametrize(("module", "name"), [(tree, "tree"), (tree_util, "tree_util")])
def test_public_names_are_those_of_jax(jax_oracle, module, name):
    theirs = jax_oracle.run(f"[n for n in dir(jax.{name}) if not n.startswith('_')]").value
    assert set(theirs) <= set(dir(module)), set(theirs) - set(dir(module))


def test_a_namedtuples_keys_are_its_fields():
    pairs, kind = tree_util.flatten_one_level_with_keys(Point(1, 2))
    assert [(str(key), child) for key, child in pairs] == [(".x", 1), (".y", 2)]
    assert kind is Point


def test_a_static_field_keeps_other_metadata():
    field = tree.static(default=3, metadata={"unit": "m"})
    assert isinstance(field, dataclasses.Field)
    assert dict(field.metadata) == {"unit": "m", "static": True}
