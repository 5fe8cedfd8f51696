"""Are dtypes and promotion JAX's?  Every pair, weak and strong, 32 and 64 bits, is compared."""

from __future__ import annotations

import itertools
import warnings

import ml_dtypes
import numpy as np
import oracle
import pytest
from both import source_of

import saem as jax
from saem import dtypes as public
from saem import numpy as jnp
from saem.core import dtypes
from saem.core.config import enable_x64, explicit_x64_dtypes, numpy_dtype_promotion
from saem.core.promotion import lattice_join, promote_types, result_type, typed

STRONG = sorted(
    (d for d in dtypes.ARRAY_DTYPES if d != dtypes.float0), key=lambda d: (d.kind, d.name)
)
NAMES = [d.name for d in STRONG]
# Weak types JAX arrays really have: those of Python numbers, and what arithmetic makes of them.
WEAK = ["int32", "float32", "complex64", "int8", "uint8", "uint32", "bfloat16", "float16"]
WEAK_64 = ["int64", "float64", "complex128"]
PUBLIC_NAMES = {
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
}  # fmt: skip

def table(types, mode):
    """Return what every two types meet in."""
    def meet(a, b):
        out = {}

        def f(x, y):
            out["r"] = public.result_type(x, y, return_weak_type_flag=True)
            return 0

        try:
            jax.eval_shape(f, *(jax.ShapeDtypeStruct((), n, weak_type=w) for n, w in (a, b)))
        except public.TypePromotionError:
            return "refused"
        return out["r"][0].name, bool(out["r"][1])

    with jax.numpy_dtype_promotion(mode):
        return [meet(a, b) for a in types for b in types]


def table_types(x64: bool) -> list[tuple[str, bool]]:
    wide = {"int64", "uint64", "float64", "complex128"}
    strong = [(name, False) for name in NAMES if x64 or name not in wide]
    return strong + [(name, True) for name in (WEAK + WEAK_64 if x64 else WEAK)]


@pytest.mark.parametrize("mode", ["standard", "strict"])
@pytest.mark.parametrize("x64", [False, True], ids=["32bit", "64bit"])
def test_every_pair_meets_where_jax_says(jax_oracle, mode, x64):
    types = table_types(x64)
    theirs = jax_oracle.run(source_of(table), types=types, mode=mode, x64=x64).value
    wrong = []
    with enable_x64(x64), numpy_dtype_promotion(mode):
        for (a, b), expected in zip(itertools.product(types, types), theirs, strict=True):
            try:
                dtype, weak = result_type(*(
                    jax.ShapeDtypeStruct((), getattr(ml_dtypes, n, n), weak_type=w)
                    for n, w in (a, b)), return_weak_type_flag=True)
                got = (dtype.name, weak)
            except public.TypePromotionError:
                got = "refused"
            if got != expected:
                wrong.append((a, b, expected, got))
    assert len(theirs) > 700
    assert wrong == []


def test_promote_types_is_as_wide_as_asked(jax_oracle):
    def program(names):
        def p(a, b):
            try:
                return jnp.promote_types(a, b).name
            except Exception as error:
                return type(error).__name__

        types = [int, float, complex, bool, *names]
        return [p(a, b) for a in types for b in types]

    theirs = jax_oracle.run(source_of(program), names=NAMES).value
    types = [int, float, complex, bool, *NAMES]

    def ours(a, b):
        try:
            return promote_types(a, b).name
        except ValueError as error:
            return type(error).__name__

    assert [ours(a, b) for a in types for b in types] == theirs


VALUES = [
    "True", "1", "2.0", "3j", "np.float64(1)", "np.int8(1)", "np.zeros(2)", "'int8'", "float",
    "int", "bool", "np.bool_(1)", "np.float16", "None",
]  # fmt: skip


@pytest.mark.parametrize("x64", [False, True], ids=["32bit", "64bit"])
def test_values_and_dtypes_promote_as_in_jax(jax_oracle, x64):
    pairs = [f"{a}, {b}" for a in VALUES for b in VALUES] + [f"{a}," for a in VALUES]
    def program(pairs):
        names = {"np": np}
        return [public.result_type(*eval(f"({p})", names), return_weak_type_flag=True)
                for p in pairs]

    theirs = jax_oracle.run(source_of(program), pairs=pairs, x64=x64).value
    with enable_x64(x64):
        for pair, expected in zip(pairs, theirs, strict=True):
            arguments = eval(f"({pair})", {"np": np})
            assert result_type(*arguments, return_weak_type_flag=True) == expected, pair


def test_three_operands_meet_in_any_order():
    types = [(np.dtype("int8"), False), (np.dtype("int32"), True), (np.dtype("float32"), True)]
    for order in itertools.permutations(types):
        assert lattice_join(*order) == (np.dtype("float32"), True)


def test_an_int_has_the_default_type_whatever_its_size():
    for value in (2**31 - 1, 2**31, -(2**40), 2**63):
        assert typed(value) == (np.dtype("int32"), True)
        with enable_x64(True):
            assert typed(value) == (np.dtype("int64"), True)


def test_refusals_are_explained():
    with pytest.raises(public.TypePromotionError, match=r"\('int4', 'int8'\)[^$]*astype\('int32'"):
        result_type("int4", "int8")
    with (
        numpy_dtype_promotion("strict"),
        pytest.raises(public.TypePromotionError, match="jax_numpy_dtype_promotion=strict"),
    ):
        result_type("int32", 1.0)
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        result_type(np.dtype("U3"))
    with pytest.raises(ValueError, match="not a valid dtype for JAX type promotion"):
        result_type(dtypes.float0, "float32")
    with pytest.raises(ValueError, match="at least one"):
        result_type()
    with pytest.raises(TypeError, match="Cannot determine dtype"):
        result_type([1, 2])


@pytest.mark.parametrize("x64", [False, True], ids=["32bit", "64bit"])
def test_canonical_dtypes(jax_oracle, x64):
    theirs = jax_oracle.run(
        "[jax.dtypes.canonicalize_dtype(n) for n in names]", names=NAMES, x64=x64
    ).value
    with enable_x64(x64):
        assert [dtypes.canonicalize(name) for name in NAMES] == theirs


def test_an_explicit_64_bit_dtype_warns_at_the_callers_line():
    with pytest.warns(UserWarning, match="float64 requested in zeros is not available") as caught:
        assert dtypes.canonicalize("float64", explicit=True, where="zeros") == np.float32
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.canonicalize(float, explicit=True) == np.float32
        with enable_x64(True):
            assert dtypes.canonicalize("float64", explicit=True) == np.float64
        with explicit_x64_dtypes("allow"):
            assert dtypes.canonicalize("int64", explicit=True) == np.int64
        with explicit_x64_dtypes("error"), pytest.raises(ValueError, match="not available"):
            dtypes.canonicalize("int64", explicit=True)


SHORT = {
    "bool": "bool", "int8": "i8", "uint32": "u32", "float32": "f32", "bfloat16": "bf16",
    "complex64": "c64", "int4": "i4", "float8_e4m3fn": "f8_e4m3fn", "float16": "f16",
    "float8_e4m3b11fnuz": "f8_e4m3b11fnuz", "float4_e2m1fn": "f4_e2m1fn", "uint4": "u4",
}  # fmt: skip


def test_short_names_are_those_of_jaxprs(jax_oracle):
    for name, short in SHORT.items():
        assert dtypes.short_name(dtypes.as_dtype(name)) == short
        array = np.zeros((2,), dtypes.as_dtype(name))
        assert f"a:{short}[2]" in jax_oracle.jaxpr("lambda x: x", array)
    assert dtypes.short_name(dtypes.float0) == "float0"


def test_subtypes(jax_oracle):
    lower = [*NAMES]
    upper = [
        "floating", "integer", "inexact", "number", "generic", "signedinteger", "unsignedinteger",
        "bool_", "complexfloating", "float32", "int8",
    ]  # fmt: skip
    theirs = jax_oracle.run(
        "[bool(jax.dtypes.issubdtype(a, getattr(np, b))) for a in lower for b in upper]",
        lower=lower,
        upper=upper,
    ).value
    assert [dtypes.issubdtype(a, getattr(np, b)) for a in lower for b in upper] == theirs
    assert dtypes.issubdtype("bfloat16", ml_dtypes.bfloat16)
    assert dtypes.issubdtype(public.prng_key, public.extended)
    assert not dtypes.issubdtype("float32", public.extended)
    assert not dtypes.issubdtype(public.prng_key, np.number)


class ToyKey(dtypes.ExtendedDType):
    type = public.prng_key
    name = "key<toy>"
    physical = ((2,), np.dtype("uint32"))
    itemsize = 8


def test_an_extended_dtype_takes_its_place():
    key = ToyKey()
    assert dtypes.issubdtype(key, public.prng_key)
    assert dtypes.canonicalize(key) is key
    assert dtypes.short_name(key) == repr(key) == "key<toy>"
    assert dtypes.scalar_kind(key) == "extended"
    assert dtypes.to_tangent_dtype(key) == dtypes.float0
    with pytest.raises(ValueError, match="allow_extended_dtype=True"):
        public.canonicalize_dtype(key)
    with pytest.raises(ValueError, match=r"key<toy> is not a valid dtype"):
        result_type(key, 1)


FIELDS = ["bits", "eps", "max", "min", "tiny", "nmant", "nexp", "maxexp", "smallest_subnormal"]


def test_finfo_and_iinfo(jax_oracle):
    floats = [d.name for d in STRONG if dtypes.is_inexact(d)]
    theirs = jax_oracle.run(
        "[[float(getattr(jax.dtypes.finfo(n), f)) for f in fields] for n in names]",
        names=floats,
        fields=FIELDS,
    ).value
    ours = [[float(getattr(public.finfo(dtypes.as_dtype(n)), f)) for f in FIELDS] for n in floats]
    np.testing.assert_array_equal(ours, theirs)
    integers = [d.name for d in STRONG if dtypes.is_integer(d)]
    theirs = jax_oracle.run(
        "[(int(i.bits), int(i.min), int(i.max)) for i in map(jax.dtypes.iinfo, names)]",
        names=integers,
    ).value
    infos = [public.iinfo(dtypes.as_dtype(n)) for n in integers]
    assert [(i.bits, int(i.min), int(i.max)) for i in infos] == theirs


def test_itemsize_bits_and_scalar_types(jax_oracle):
    theirs = jax_oracle.run(
        "[(jax.dtypes.itemsize_bits(n), jax.dtypes.scalar_type_of(np.dtype(n)).__name__)"
        " for n in names]",
        names=list(STRONG),
        x64=True,
    ).value
    with enable_x64(True):
        ours = [(public.itemsize_bits(d), public.scalar_type_of(d).__name__) for d in STRONG]
    assert ours == theirs


def test_kinds_partition_the_dtypes():
    for dtype in STRONG:
        kinds = [dtypes.is_bool, dtypes.is_integer, dtypes.is_float, dtypes.is_complex]
        assert sum(is_kind(dtype) for is_kind in kinds) == 1, dtype
        assert dtypes.is_inexact(dtype) == (dtypes.to_tangent_dtype(dtype) == dtype)
    assert dtypes.is_unsigned(np.dtype("uint8"))
    assert not dtypes.is_unsigned(np.dtype("int8"))
    assert dtypes.real_dtype(np.dtype("complex64")) == np.float32
    assert dtypes.real_dtype(np.dtype("complex128")) == np.float64
    assert dtypes.complex_dtype(np.dtype("float64")) == np.complex128
    assert dtypes.complex_dtype(np.dtype("float32")) == np.complex64
    assert dtypes.scalar_kind(np.dtype("O")) == "other"


def test_public_names_are_those_of_jax(jax_oracle):
    theirs = set(jax_oracle.run("[n for n in dir(jax.dtypes) if not n.startswith('_')]").value)
    assert set(public.__all__) == theirs
    assert PUBLIC_NAMES == theirs
    assert jax_oracle.run("np.zeros(2, jax.dtypes.float0)").dtype == public.float0


def test_oracle_errors_are_classes_here(jax_oracle):
    with pytest.raises(oracle.JaxError) as caught:
        jax_oracle.run("jax.dtypes.result_type('int4', 'int8')")
    assert caught.value.bases[:2] == ["TypePromotionError", "ValueError"]
    assert issubclass(public.TypePromotionError, ValueError)


def test_descriptions_of_dtypes_are_classes():
    assert isinstance(jnp.float32.dtype, jnp.dtype)
    assert type(jnp.float32).__name__ == "_ScalarMeta"  # by which libraries know it
    assert isinstance(jnp.iinfo(jnp.int4), jnp.iinfo)
    assert jnp.finfo(jnp.ones(2)).bits == 32
    assert jnp.iinfo(jnp.int8).max == 127


def test_wide_dtypes_are_not_weak():
    with enable_x64(True):
        for wide, narrow in (("float64", "float32"), ("int64", "int32"),
                             ("complex128", "complex64")):
            assert jnp.promote_types(np.dtype(wide), np.dtype(narrow)) == np.dtype(wide)
            assert jnp.promote_types(np.dtype(narrow), np.dtype(wide)) == np.dtype(wide)


@pytest.mark.parametrize("dtype", ["jnp.float64", "jnp.int64", "np.float64", "'float64'",
                                   "np.dtype('float64')", "float", "jnp.float32", "jnp.complex128"])
def test_which_dtypes_are_narrowed_with_a_warning_is_as_on_jax(jax_oracle, dtype):
    program = f"""
import warnings
result = []
for ask in (lambda D: jnp.result_type(D), lambda D: jnp.result_type(D, np.float32(1)),
            lambda D: jax.dtypes.result_type(D), lambda D: jnp.promote_types(D, np.int8),
            lambda D: jax.dtypes.canonicalize_dtype(D), lambda D: jnp.zeros(2, D).dtype,
            lambda D: jnp.ones(2).astype(D).dtype, lambda D: jnp.can_cast(D, np.float32)):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result.append((str(ask({dtype})), bool(seen)))
"""
    names = {"jax": jax, "jnp": jnp, "np": np}
    exec(program, names)
    assert [tuple(row) for row in jax_oracle.run(program).value] == names["result"]
