"""pycuda.curandom: arrays of random numbers. On host NumPy draws them; elsewhere CuPy, or NumPy with a copy to the device."""

import numpy as np

import gpuglue

from . import _sobol, gpuarray
from ._missing import refusing
from ._random import _Generator, _count, seed_getter_uniform, seed_getter_unique
from ._sobol import (
    direction_vector_set, generate_direction_vectors, generate_scramble_constants32, generate_scramble_constants64, get_curand_version)

__all__ = [
    "MRG32k3aRandomNumberGenerator", "ScrambledSobol32RandomNumberGenerator", "ScrambledSobol64RandomNumberGenerator",
    "Sobol32RandomNumberGenerator", "Sobol64RandomNumberGenerator", "XORWOWRandomNumberGenerator", "direction_vector_set",
    "generate_direction_vectors", "generate_scramble_constants32", "generate_scramble_constants64", "get_curand_version", "rand",
    "seed_getter_uniform", "seed_getter_unique"]


_DOC = """A generator of random numbers.

    Parameters
    ----------
    seed_getter : function, optional
        Called with a length; returns a GPUArray of seeds, as `seed_getter_uniform` does, which is the default.
    offset : int, default 0
        How many numbers of 4 bytes are skipped.

    Notes
    -----
    Equal seeds give equal numbers on one device, and not those of CURAND. {which}

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> def seed(n):
    ...     return gpuarray.to_gpu(np.full(n, 5, np.int32))
    >>> first, second = (curandom.{name}(seed).gen_uniform(3, np.float32) for _ in range(2))
    >>> bool((first.get() == second.get()).all())
    True
    """


class _Pseudo(_Generator):
    """What those have that draw from sequences of their own."""

    def _skip_subsequences(self, count):
        if count and self._drawn is not None:
            self._drawn.synchronize()  # the state is freed
        self._subsequence += count
        self._sources.clear()

    def call_skip_ahead_sequence(self, i, stream=None):
        """Go to another sequence, to the same place.

        Parameters
        ----------
        i : int
            How many sequences further.
        stream : Stream, optional
            Not used.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().call_skip_ahead_sequence(1)
        """
        self._skip_subsequences(_count(i) * self._subsequences)

    def call_skip_ahead_sequence_array(self, i, stream=None):
        """Go to another sequence.

        Parameters
        ----------
        i : GPUArray
            One count, as of `call_skip_ahead_sequence`.
        stream : Stream, optional
            Not used.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().call_skip_ahead_sequence_array(gpuarray.to_gpu(np.array([2])))
        """
        self.call_skip_ahead_sequence(i.get())


class XORWOWRandomNumberGenerator(_Pseudo):
    __doc__ = _DOC.format(name="XORWOWRandomNumberGenerator", which="The algorithm is XORWOW with CuPy, and PCG64 with NumPy.")
    _kind = "XORWOW"


class MRG32k3aRandomNumberGenerator(_Pseudo):
    __doc__ = _DOC.format(name="MRG32k3aRandomNumberGenerator", which="The algorithm is MRG32k3a with CuPy, and PCG64 with NumPy.")
    _kind, _subsequences = "MRG32k3a", 1 << 51

    def call_skip_ahead_subsequence(self, i, stream=None):
        """Go to another subsequence, to the same place.

        Parameters
        ----------
        i : int
            How many: a sequence has 2^51.
        stream : Stream, optional
            Not used.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.MRG32k3aRandomNumberGenerator().call_skip_ahead_subsequence(1)
        """
        self._skip_subsequences(_count(i))

    def call_skip_ahead_subsequence_array(self, i, stream=None):
        """Go to another subsequence.

        Parameters
        ----------
        i : GPUArray
            One count, as of `call_skip_ahead_subsequence`.
        stream : Stream, optional
            Not used.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.MRG32k3aRandomNumberGenerator().call_skip_ahead_subsequence_array(gpuarray.to_gpu(np.array([2])))
        """
        self._skip_subsequences(_count(i.get()))


class _Quasi(_Generator):
    """What the generators of Sobol's sequences share."""

    _bits, _scrambled = 32, False

    def __init__(self, dir_vector=None, offset=0):
        self._start(dir_vector, None, offset)

    def _start(self, vectors, constants, offset):
        word = np.dtype(f"u{self._bits // 8}")
        vectors = _sobol._numbers(_sobol._COUNT, self._bits) if vectors is None else self._given("dir_vector", vectors, word)
        vectors = vectors.reshape(-1, self._bits)
        if self._scrambled:
            constants = _sobol._constants(len(vectors), self._bits) if constants is None else self._given("scramble_vector", constants, word)
            if constants.size != len(vectors):
                raise ValueError(f"scramble_vector has {constants.size} numbers for {len(vectors)} vectors: expected one for each")
            constants = constants.reshape(-1)
        self.block_count = len(vectors)
        self._sequences = _sobol.Sequences(vectors, constants if self._scrambled else word.type(0), int(offset))

    def _given(self, name, array, word):
        host = array.get()
        unit = self._bits if name == "dir_vector" else 1
        if host.dtype.itemsize != word.itemsize or host.dtype.kind not in "iu" or not host.size or host.size % unit:
            raise ValueError(f"{name} is {host.shape} of {host.dtype}: expected {word} and a multiple of {unit} numbers")
        return np.ascontiguousarray(host).view(word)

    def _fill(self, draw, data, stream):
        if data.size:
            self._set(draw, self._sequences, data, stream)

    def _skip(self, counts):
        self._sequences.skip(counts)


class _Scrambled(_Quasi):
    _scrambled = True

    def __init__(self, dir_vector=None, scramble_vector=None, offset=0):
        self._start(dir_vector, scramble_vector, offset)


_SOBOL = """Sobol's sequences of {bits} bits{which}, computed on the host.

    Parameters
    ----------
    dir_vector : GPUArray, optional
        Vectors of {bits} numbers of uint{bits}, one for each generator, as of `generate_direction_vectors`, which is the default.{more}
    offset : int, default 0
        How many numbers each generator skips.

    Raises
    ------
    ImportError
        If there are no vectors, and SciPy, which has the table of direction numbers, is not installed.
    ValueError
        If the vectors have another size or type.

    Notes
    -----
    Generator t of n draws the elements t, t + n, t + 2 n, … of an array.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> vectors = gpuarray.to_gpu(np.uint{bits}(1) << np.arange({bits} - 1, -1, -1).astype(np.uint{bits}))
    >>> curandom.{name}(vectors).gen_uniform((2, 2), np.float32).shape
    (2, 2)
    """
_SCRAMBLES = """
    scramble_vector : GPUArray, optional
        A number of uint{bits} for each generator, with which its numbers are combined by exclusive or; random ones by default."""


class Sobol32RandomNumberGenerator(_Quasi):
    __doc__ = _SOBOL.format(bits=32, which="", more="", name="Sobol32RandomNumberGenerator")


class Sobol64RandomNumberGenerator(_Quasi):
    __doc__ = _SOBOL.format(bits=64, which="", more="", name="Sobol64RandomNumberGenerator")
    _bits = 64


class ScrambledSobol32RandomNumberGenerator(_Scrambled):
    __doc__ = _SOBOL.format(bits=32, which=", scrambled", more=_SCRAMBLES.format(bits=32), name="ScrambledSobol32RandomNumberGenerator")


class ScrambledSobol64RandomNumberGenerator(_Scrambled):
    __doc__ = _SOBOL.format(bits=64, which=", scrambled", more=_SCRAMBLES.format(bits=64), name="ScrambledSobol64RandomNumberGenerator")
    _bits = 64


_generators: dict = {}


def rand(shape, dtype=np.float32, stream=None):
    """Make an array of uniform numbers.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default numpy.float32
        Float32 or float64, for numbers from 0 up to 1, or integers of 4 or 8 bytes, for any.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The numbers.

    Raises
    ------
    NotImplementedError
        If the dtype is another.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> curandom.rand((2, 3)).shape
    (2, 3)
    """
    device = gpuglue.current_device()
    if device not in _generators:
        _generators[device] = XORWOWRandomNumberGenerator()
    return _generators[device].gen_uniform(shape, dtype, stream)


__getattr__ = refusing(__name__)
