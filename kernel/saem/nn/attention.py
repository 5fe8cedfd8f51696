"""How does attention combine the values of a sequence?

Each query gives weights to all keys, by its products with them; the result is the weighted sum of
the values.  Several query heads may share one head of keys and values; masks exclude keys.

Read before: ``nn.normalization``.
Invariant: with ``key_value_seq_lengths`` or ``is_causal`` a place has no gradient from what it may
not see; results are those of jax.nn.dot_product_attention (tests/kernel/test_attention.py).
Source: Vaswani et al. 2017, section 3.2; Ainslie et al. 2023 (grouped queries); Beltagy et al. 2020
(windows).
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np

from saem import lax
from saem import numpy as jnp
from saem.core import dtypes, errors, promotion
from saem.core.dimensions import is_static
from saem.core.lazy import later
from saem.core.trace import Tracer
from saem.nn.logarithms import logsumexp
from saem.nn.normalization import softmax
from saem.typing import Array, ArrayLike

cudnn: Any = later("saem.nn.cudnn")  # a kernel of GPUs

# Instead of -inf: a row that is masked as a whole has a softmax, and the sum of two of these is
# no overflow.
MASKED = -0.7


def _refused(tag: str, message: str, advice: str) -> Exception:
    return errors.explained(errors.ArgumentError, f"dot_product_attention.{tag}", message,
                            advice=advice)


def _check(name: str, x: Array | None, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse ``x`` unless it has ``dtype`` and ``shape``, in which -1 is any size.

    Raises: ValueError.
    """
    if x is None:
        return
    if x.dtype != dtype:
        raise _refused(name, f"{name} dtype should be {np.dtype(dtype)}, but got {x.dtype}",
                       f"Convert it: {name}.astype('{np.dtype(dtype)}').")
    if len(x.shape) != len(shape) or any(n not in (-1, m) for n, m in zip(shape, x.shape)):
        raise _refused(name, f"{name} shape should be {list(shape)}: but got {x.shape}",
                       "-1 stands for any size.")


def counted(n: int) -> Any:
    """Return 0, 1, … below ``n``: NumPy's where that is known."""
    return np.arange(n) if is_static((n,)) else jnp.arange(n)


def _visible(queries: int, keys: int, is_causal: bool, window: tuple[int, int] | None,
             query_lengths: Array | None, key_lengths: Array | None) -> list[Array]:
    """Return masks of shape [batch or 1, 1, queries, keys]: true where a query sees a key."""
    masks = []
    if is_causal:
        masks.append(jnp.tril(jnp.ones((queries, keys), bool))[None, None])
    i, j = counted(queries)[:, None], counted(keys)[None]
    if window is not None:
        left, right = window
        masks.append(jnp.asarray((j + left >= i) & (j <= i + right))[None, None])
    if query_lengths is not None:
        masks.append((i[None] < query_lengths[:, None, None])[:, None])
    if key_lengths is not None:
        masks.append((j[None] < key_lengths[:, None, None])[:, None])
    return masks


def _grouped(x: Array, heads: int, groups: int) -> Array:
    """Return a bias or mask [B, N, T, S] as [B, groups, heads / groups, T, S]; N may be 1."""
    if x.shape[1] == 1:
        return jnp.broadcast_to(x[:, :, None], (x.shape[0], 1, heads // groups, *x.shape[2:]))
    return jnp.reshape(x, (x.shape[0], groups, heads // groups, *x.shape[2:]))


def _of_rank_4(x: ArrayLike | None) -> Array | None:
    """Return a bias or mask with axes of size 1 in front, [B or 1, N or 1, T, S]."""
    if x is None:
        return None
    x = jnp.asarray(x)
    return jnp.reshape(x, (1,) * (4 - x.ndim) + x.shape)


def _check_operands(query: Array, key: Array, value: Array, bias: Array | None,
                    mask: Array | None, lengths: tuple[Array | None, Array | None]) -> None:
    """Refuse operands whose shapes or dtypes do not fit.

    Raises: ValueError; AssertionError for a bias or mask that does not broadcast.
    """
    if query.ndim != 4 or key.ndim != 4:
        raise _refused("rank", "query, key and value need 3 or 4 axes, but got query "
                       f"{query.shape} and key {key.shape}",
                       "They are [B, T, N, H], or [T, N, H] without a batch.")
    batch, queries, heads, _ = query.shape
    keys, groups = key.shape[1:3]
    features = key.shape[-1]
    _check("key", key, (batch, -1, -1, -1), key.dtype)
    _check("query", query, (batch, -1, -1, features), key.dtype)
    _check("value", value, (batch, keys, groups, features), key.dtype)
    _check("bias", bias, (-1, -1, -1, -1), bias.dtype if bias is not None else None)
    _check("mask", mask, (-1, -1, -1, -1), bool)
    for name, x in zip(("query_seq_lengths", "key_value_seq_lengths"), lengths):
        _check(name, x, (batch,), np.int32)
    if heads % groups:
        raise _refused(
            "heads", "The number of query heads must be a multiple of key/value heads, but got "
            f"{heads} vs {groups}", "Each head of keys serves as many query heads as each other.")
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None:
            assert all(n in (1, m) for n, m in zip(x.shape, (batch, heads, queries, keys))), (
                f"{name} of shape {x.shape} does not broadcast to {(batch, heads, queries, keys)}")


def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None,
        key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None,
        implementation: Literal["xla", "cudnn"] | None = None, return_residual: bool = False
        ) -> Any:
    """Return softmax(query keyᵀ scale + bias) value, for each batch and head.

    query: [B, T, N, H]; key, value: [B, S, K, H], where K divides N; B may be left out of all.
    bias, mask: broadcastable to [B, N, T, S]; where ``mask`` is false a place is not seen.
    scale: 1 / sqrt(H) if None.  is_causal: a query sees no key of a later place.
    query_seq_lengths, key_value_seq_lengths: [B] of int32, the places in use of each sequence.
    local_window_size: how many places (left, right) of its own a query sees.
    implementation: None and 'xla' are this program; 'cudnn' is a kernel of NVIDIA's GPUs, for
    float16 and bfloat16.
    return_residual: return also the logsumexp of the logits, [B, T, N].
    Returns: [B, T, N, H].  Raises: ValueError for shapes or dtypes that do not fit; RuntimeError or
    NotImplementedError where there is no cuDNN, or it does not compute this.

    >>> x = jnp.ones((2, 4, 1, 8))
    >>> dot_product_attention(x, x, x, is_causal=True).shape
    (2, 4, 1, 8)
    """
    query, key, value = map(jnp.asarray, (query, key, value))
    out_shape = query.shape
    query, key, value = (x if x.ndim == 4 else x[None] for x in (query, key, value))
    bias, mask = map(_of_rank_4, (bias, mask))
    lengths = tuple(None if x is None else jnp.asarray(x)
                    for x in (query_seq_lengths, key_value_seq_lengths))
    _check_operands(query, key, value, bias, mask, lengths)
    window = local_window_size
    how = {"mask": mask, "is_causal": is_causal, "lengths": lengths,
           "scale": 1 / np.sqrt(query.shape[-1]) if scale is None else scale,
           "window": (window, window) if isinstance(window, int) else window}
    if implementation in (None, "xla"):
        out, residual = _by_xla(query, key, value, bias, **how, return_residual=return_residual)
    elif implementation == "cudnn":
        by_xla = functools.partial(_by_xla, **how)
        out, residual = cudnn.attention(by_xla, query, key, value, bias, **how)
    else:
        raise _refused("implementation", f"Unsupported implementation option: {implementation}",
                       "Use 'xla', 'cudnn' or None.")
    out = jnp.reshape(out, out_shape)
    return (out, jnp.reshape(residual, out_shape[:-1])) if return_residual else out


def _by_xla(query: Array, key: Array, value: Array, bias: Array | None, *, mask: Array | None,
            scale: float, is_causal: bool, window: tuple[int, int] | None,
            lengths: tuple[Array | None, Array | None], return_residual: bool = False
            ) -> tuple[Array, Array | None]:
    """Return the attention [B, T, N, H], and the logsumexp of the logits [B, T, N] on request."""
    seen = _visible(query.shape[1], key.shape[1], is_causal, window, *lengths)
    masks = [*([] if mask is None else [mask]), *seen]
    out, residual = _attend(query, key, value, bias, masks, scale, lengths[0], return_residual)
    return jnp.reshape(out, query.shape), residual


def _attend(query: Array, key: Array, value: Array, bias: Array | None, masks: list[Array],
            scale: float, query_lengths: Array | None, return_residual: bool
            ) -> tuple[Array, Array | None]:
    """Return the attention [B, T, K, N/K, H], and the logsumexp on request."""
    batch, queries, heads, features = query.shape
    groups = key.shape[2]
    grouped = jnp.reshape(query, (batch, queries, groups, heads // groups, features))
    # Logits are float32 at least, [B, K, N/K, T, S].
    wide = promotion.at_least(query.dtype, np.float32)
    algorithm = "BF16_BF16_F32" if query.dtype == dtypes.bfloat16 else None
    logits = jnp.einsum("BTKGH,BSKH->BKGTS", grouped, key, precision=algorithm,
                        preferred_element_type=wide)
    logits = logits * (lax.convert_element_type(scale, wide) if isinstance(scale, Tracer)
                       else np.asarray(scale, wide)[()])
    if bias is not None:
        logits = (logits + _grouped(bias, heads, groups)).astype(wide)
    if masks:
        seen = _grouped(masks[0], heads, groups)
        for mask in masks[1:]:
            seen = seen & _grouped(mask, heads, groups)
        lowest = np.asarray(MASKED * float(dtypes.finfo(wide).max), wide)[()]
        logits = jnp.where(seen, logits, lowest)
    weights = softmax(logits).astype(key.dtype)
    out = jnp.einsum("BKGTS,BSKH->BTKGH", weights, value, preferred_element_type=value.dtype)
    if query_lengths is not None:  # places that are not in use give zeros
        used = np.arange(queries)[None] < query_lengths[:, None]
        out = out * used[:, :, None, None, None].astype(out.dtype)
    residual = None
    if return_residual:
        residual = lax.stop_gradient(logsumexp(logits, axis=-1).transpose(0, 3, 1, 2))
    return out, residual
