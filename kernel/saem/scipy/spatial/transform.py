"""How are rotations in space described, composed and interpolated?

The public namespace ``jax.scipy.spatial.transform``.  A rotation is a quaternion (x, y, z, w) of
length 1; every other description is converted.

Read before: ``saem.numpy``.
Invariant: descriptions go there and back, and agree with SciPy's
(tests/kernel/scipy/test_rotations.py).
Source: Shuster 1993, "A survey of attitude representations"; Bernardes and Viollet 2022,
"Quaternion to Euler angles conversion"; Shoemake 1985 (interpolation); Markley et al. 2007 (mean).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saem import numpy as jnp
from saem import random
from saem.core import dtypes, errors
from saem.numpy import linalg
from saem.typing import Array

__all__ = ["Rotation", "Slerp"]


def _refused(tag: str, message: str, advice: str) -> Exception:
    return errors.explained(errors.ArgumentError, f"Rotation.{tag}", message, advice=advice)


def _normalized(quat: Array) -> Array:
    return quat / jnp.linalg.norm(quat, axis=-1, keepdims=True)


def _product(p: Array, q: Array) -> Array:
    """Return Hamilton's product of quaternions [..., 4]."""
    vector = (p[..., 3:] * q[..., :3] + q[..., 3:] * p[..., :3] + jnp.cross(p[..., :3], q[..., :3]))
    scalar = p[..., 3:] * q[..., 3:] - jnp.sum(p[..., :3] * q[..., :3], -1, keepdims=True)
    return jnp.concatenate([vector, scalar], -1)


def _of_axis(axis: int, angle: Array) -> Array:
    """Return the quaternion of a turn by ``angle`` around a coordinate axis."""
    parts = [jnp.zeros_like(angle)] * 4
    parts[axis], parts[3] = jnp.sin(angle / 2), jnp.cos(angle / 2)
    return jnp.stack(parts, -1)


def _of_matrix(m: Array) -> Array:
    """Return the quaternions of matrices [..., 3, 3]: from the largest of its four squares."""
    diagonal = jnp.diagonal(m, axis1=-2, axis2=-1)
    trace = jnp.sum(diagonal, -1, keepdims=True)
    choices = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = [m[..., 0, 0]] * 4
        parts[i] = 1 - trace[..., 0] + 2 * m[..., i, i]
        parts[j] = m[..., j, i] + m[..., i, j]
        parts[k] = m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        choices.append(jnp.stack(parts, -1))
    choices.append(jnp.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0],
                              m[..., 1, 0] - m[..., 0, 1], 1 + trace[..., 0]], -1))
    largest = jnp.argmax(jnp.concatenate([diagonal, trace], -1), -1)
    picked = jnp.take_along_axis(jnp.stack(choices, -2), largest[..., None, None], -2)
    return _normalized(picked[..., 0, :])


def _axes_of(seq: str) -> tuple[list[int], bool]:
    """Return the axes that ``seq`` names, and whether they are fixed in space."""
    if not re.fullmatch(r"[xyz]{1,3}|[XYZ]{1,3}", seq):
        raise _refused("seq", "Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', "
                       f"'Z'], got {seq}", "Small letters are fixed axes, capitals turn along.")
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise _refused("seq", f"Expected consecutive axes to be different, got {seq}",
                       "Two turns around one axis are one turn.")
    return ["xyz".index(c) for c in seq.lower()], seq.islower()


class Rotation(NamedTuple):
    """A rotation, or an array of them: quaternions (x, y, z, w) of length 1, [..., 4].

    >>> turn = Rotation.from_euler('z', jnp.array(90.), degrees=True)
    >>> turn.apply(jnp.array([1., 0., 0.])).round(3)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence) -> Rotation:
        """Return several rotations as one array of them."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Array, degrees: bool = False) -> Rotation:
        """Return turns by ``angles`` [..., len(seq)] around the axes of ``seq``, in that order.

        Small letters are axes fixed in space, capitals axes that turn along.
        Raises: ValueError for another ``seq`` or number of angles.
        """
        axes, fixed = _axes_of(seq)
        angles = jnp.asarray(angles)
        angles = angles.astype(dtypes.to_inexact(angles.dtype))
        if len(axes) == 1 and (angles.ndim == 0 or angles.shape[-1] != 1 or angles.ndim == 1):
            angles = angles[..., None] if angles.ndim != 1 or angles.shape[0] != 1 else angles
        if angles.shape[-1:] != (len(axes),):
            raise _refused("angles", f"Expected {len(axes)} angles for axes {seq}, got shape "
                           f"{angles.shape}", "Angles are the last axis.")
        if degrees:
            angles = jnp.deg2rad(angles)
        quat = _of_axis(axes[0], angles[..., 0])
        for i, axis in enumerate(axes[1:], 1):
            turn = _of_axis(axis, angles[..., i])
            quat = _product(turn, quat) if fixed else _product(quat, turn)
        return cls(quat)

    @classmethod
    def from_matrix(cls, matrix: Array) -> Rotation:
        """Return the rotations of orthogonal matrices [..., 3, 3].  Raises: ShapeError."""
        matrix = jnp.asarray(matrix)
        if matrix.shape[-2:] != (3, 3):
            raise errors.explained(
                errors.ShapeError, "Rotation.matrix",
                f"Expected matrices of shape (..., 3, 3), got {matrix.shape}",
                advice="The last two axes are rows and columns of one rotation.")
        return cls(_of_matrix(matrix))

    @classmethod
    def from_mrp(cls, mrp: Array) -> Rotation:
        """Return rotations of modified Rodrigues parameters [..., 3]: axis times tan(angle / 4)."""
        mrp = jnp.asarray(mrp)
        mrp = mrp.astype(dtypes.to_inexact(mrp.dtype))
        square = jnp.sum(mrp * mrp, -1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], -1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: Array) -> Rotation:
        """Return rotations of quaternions (x, y, z, w) [..., 4], of any length but 0."""
        return cls(_normalized(jnp.asarray(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: Array, degrees: bool = False) -> Rotation:
        """Return turns around vectors [..., 3] by their lengths."""
        rotvec = jnp.asarray(rotvec)
        if degrees:
            rotvec = jnp.deg2rad(rotvec)
        square = jnp.sum(rotvec * rotvec, -1, keepdims=True)
        small = square < 1e-6
        angle = jnp.sqrt(jnp.where(small, 1, square))
        scale = jnp.where(small, 0.5 - square / 48, jnp.sin(angle / 2) / angle)
        cosine = jnp.where(small, 1 - square / 8, jnp.cos(angle / 2))
        return cls(jnp.concatenate([scale * rotvec, cosine], -1))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """Return the rotation that changes nothing, ``num`` times."""
        quat = jnp.array([0, 0, 0, 1], dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Return rotations that are even over all directions."""
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    def __getitem__(self, indexer: Any) -> Rotation:
        """Return some of several rotations.  Raises: TypeError for a single one."""
        if self.single:
            raise errors.explained(errors.ArgumentTypeError, "Rotation.index",
                                   "Single rotation is not subscriptable.",
                                   advice="Make an array of rotations first.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """Return how many rotations these are.  Raises: TypeError for a single one."""
        if self.single:
            raise errors.explained(errors.ArgumentTypeError, "Rotation.len",
                                   "Single rotation has no len().",
                                   advice="Make an array of rotations first.")
        return self.quat.shape[0]

    def __mul__(self, other: Any) -> Rotation:
        """Return the rotation by ``other``, then by this."""
        return Rotation.from_quat(_product(self.quat, other.quat))

    @property
    def single(self) -> bool:
        """Return whether this is one rotation, not an array of them."""
        return self.quat.ndim == 1

    def apply(self, vectors: Array, inverse: bool = False) -> Array:
        """Return ``vectors`` [..., 3] turned, or turned back if ``inverse``."""
        matrix = self.as_matrix()
        return jnp.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", matrix,
                          jnp.asarray(vectors))

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return angles [..., 3] of turns around the axes of ``seq`` that make this rotation."""
        if len(seq) != 3:
            raise _refused("seq", f"Expected 3 axes, got {seq}.", "For example 'xyz'.")
        axes, fixed = _axes_of(seq)
        first, third = (0, 2) if fixed else (2, 0)
        i, j, k = axes if fixed else axes[::-1]
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        qi, qj, qk, w = (self.quat[..., axis] for axis in (i, j, k, 3))
        a, b, c, d = (w, qi, qj, qk * sign) if symmetric else (
            w - qj, qi + qk * sign, qj + w, qk * sign - qi)
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        low, high = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        # At both poles only a sum or difference of two angles is known: the last is 0.
        alone = jnp.where(low, 2 * half_sum, 2 * half_difference * (-1 if fixed else 1))
        pole = low | high
        found = [middle] * 3
        found[first], found[third] = half_sum - half_difference, half_sum + half_difference
        found[0], found[2] = jnp.where(pole, alone, found[0]), jnp.where(pole, 0, found[2])
        if not symmetric:
            found[third], found[1] = found[third] * sign, middle - np.pi / 2
        angles = jnp.stack(found, -1)
        angles = jnp.where(angles < -np.pi, angles + 2 * np.pi,
                           jnp.where(angles > np.pi, angles - 2 * np.pi, angles))
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Return the orthogonal matrices [..., 3, 3]."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w]]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters [..., 3], of length at most 1."""
        sign = jnp.where(self.quat[..., 3:] < 0, -1, 1)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return the axes [..., 3] times the angles, which are at most pi."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        square = jnp.sum(quat[..., :3] ** 2, -1, keepdims=True)
        small = square < 1e-8
        sine = jnp.sqrt(jnp.where(small, 1, square))
        angle = 2 * jnp.arctan2(sine, quat[..., 3:])
        rotvec = jnp.where(small, 2 + square / 3, angle / sine) * quat[..., :3]
        return jnp.rad2deg(rotvec) if degrees else rotvec

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return the quaternions (x, y, z, w) [..., 4], or (w, x, y, z) if ``scalar_first``.

        canonical: of both quaternions of a rotation, the one whose last number not 0 is positive.
        """
        quat = self.quat
        if canonical:
            x, y, z, w = (quat[..., i] for i in range(4))
            lead = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
            quat = jnp.where((lead < 0)[..., None], -quat, quat)
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def inv(self) -> Rotation:
        """Return the rotations back."""
        x, y, z, w = jnp.split(self.quat, 4, axis=-1)
        return Rotation(jnp.concatenate([-x, -y, -z, w], axis=-1))

    def magnitude(self) -> Array:
        """Return the angles of rotation, in [0, pi]."""
        return 2 * jnp.arctan2(jnp.linalg.norm(self.quat[..., :3], axis=-1),
                               jnp.abs(self.quat[..., 3]))

    def mean(self, weights: Array | None = None) -> Rotation:
        """Return the rotation nearest to all of these, each counted ``weights`` [n] times.

        Raises: ShapeError for a single rotation or another number of weights.
        """
        counted = jnp.ones(self.quat.shape[:-1], self.quat.dtype) if weights is None else weights
        if self.single or jnp.shape(counted) != self.quat.shape[:-1]:
            raise errors.explained(
                errors.ShapeError, "Rotation.mean",
                "The mean needs several rotations [n, 4] and a weight for each, got rotations "
                f"{self.quat.shape} and weights {jnp.shape(counted)}",
                advice="Make an array of rotations first.")
        sums = jnp.einsum("n,ni,nj->ij", counted, self.quat, self.quat)
        return Rotation.from_quat(linalg.eigh(sums)[1][:, -1])


class Slerp(NamedTuple):
    """Rotations at times, and the turns between them at constant speed: made by ``Slerp.init``."""

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: Array, rotations: Rotation) -> Slerp:
        """Return the interpolation of ``rotations`` [n] at ascending ``times`` [n].

        Raises: ValueError for a single rotation or another number of times.
        """
        if rotations.single or len(rotations) == 1:
            raise _refused("slerp", "`rotations` must be a sequence of at least 2 rotations.",
                           "One rotation has no other to turn to.")
        times = jnp.asarray(times)
        if times.ndim != 1 or times.shape[0] != len(rotations):
            raise _refused("slerp.times", "Expected number of rotations to be equal to number of "
                           f"timestamps given, got {len(rotations)} rotations and {times.shape} "
                           "timestamps.", "One time for each rotation.")
        before, after = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), before, (before.inv() * after).as_rotvec())

    def __call__(self, times: Array) -> Rotation:
        """Return the rotations at ``times``, a number or a vector."""
        times = jnp.asarray(times)
        at = jnp.atleast_1d(times)
        place = jnp.clip(jnp.searchsorted(self.times, at) - 1, 0, len(self.rotvecs) - 1)
        part = (at - self.times[place]) / self.timedelta[place]
        found = self.rotations[place] * Rotation.from_rotvec(self.rotvecs[place] * part[:, None])
        return found[0] if times.ndim == 0 else found
