"""Do the names of hijax let libraries define their classes, and refuse to compute?"""

import pytest

import saem as jax
from saem.experimental import hijax


def test_classes_can_be_defined_and_refuse_to_run():
    class Type(hijax.MutableHiType):
        shape = hijax.aval_property(fget=lambda aval: (2,))
        method = hijax.aval_method(lambda aval: 1)

    class Operation(hijax.HiPrimitive):
        multiple_results = True

    hijax.register_hitype(Operation, lambda value: Type())
    operation = Operation("read")
    assert repr(operation) == "read"
    with pytest.raises(NotImplementedError, match="the operation 'read' needs the types of hijax"):
        operation.bind(1)
    with pytest.raises(NotImplementedError, match="'Other'"):
        type("Other", (hijax.VJPHiPrimitive,), {})()(1)
    with pytest.raises(NotImplementedError, match=r"jax\.new_ref"):
        hijax.cur_qdd(1)


def test_names_that_mean_something_without_hijax():
    assert hijax.ShapedArray is jax.core.ShapedArray is hijax.AbstractValue
    zero = hijax.Zero(jax.core.ShapedArray((2,), "float32"))
    assert hijax.instantiate_zeros(zero).tolist() == [0, 0] and hijax.instantiate_zeros(3) == 3
    assert isinstance(jax.typeof(jax.new_ref(1.0)), hijax.AbstractRef)
    hijax.control_flow_allowed_effects.add_type(jax.extend.core.Effect)
    assert hijax.control_flow_allowed_effects.contains(jax.extend.core.Effect())
