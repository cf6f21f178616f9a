"""pycuda.curandom: arrays of random numbers. On host NumPy draws them; elsewhere CuPy, or NumPy with a copy to the device."""

import numpy as np

import gpuglue

from . import _compute, _memory, _sobol, gpuarray
from ._missing import Refusing, refusing
from ._sobol import (
    direction_vector_set, generate_direction_vectors, generate_scramble_constants32, generate_scramble_constants64, get_curand_version)

__all__ = [
    "MRG32k3aRandomNumberGenerator", "ScrambledSobol32RandomNumberGenerator", "ScrambledSobol64RandomNumberGenerator",
    "Sobol32RandomNumberGenerator", "Sobol64RandomNumberGenerator", "XORWOWRandomNumberGenerator", "direction_vector_set",
    "generate_direction_vectors", "generate_scramble_constants32", "generate_scramble_constants64", "get_curand_version", "rand",
    "seed_getter_uniform", "seed_getter_unique"]


def seed_getter_uniform(n):
    """Return a random seed, several times.

    Parameters
    ----------
    n : int
        Length of the result.

    Returns
    -------
    GPUArray
        Elements of int32, all equal.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> len(curandom.seed_getter_uniform(3))
    3
    """
    return gpuarray.to_gpu(np.full(n, _entropy(1)[0], np.int32))


def seed_getter_unique(n):
    """Return random seeds.

    Parameters
    ----------
    n : int
        Length of the result.

    Returns
    -------
    GPUArray
        Elements of int32.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> len(curandom.seed_getter_unique(3))
    3
    """
    return gpuarray.to_gpu(_entropy(n))


def _entropy(n):
    return np.random.default_rng().integers(0, 2**31 - 1, n, np.int32)


def _uniform(source, module, shape, dtype, given):
    if dtype.kind in "iu" and dtype.itemsize in (4, 8):
        limits = np.iinfo(dtype)
        return source.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return source.random(shape, _float(dtype))


def _normal(source, module, shape, dtype, given):
    return source.standard_normal(shape, _float(dtype))


def _float(dtype):
    if dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"random numbers of {dtype}: expected float32 or float64; for others draw these and use astype()")
    return dtype


class _Generator(Refusing):
    """What the generators share."""

    _kind = ""

    def __init__(self, seed_getter=None, offset=0):
        seeds = (seed_getter or seed_getter_uniform)(1)
        self._entropy = [*(int(seed) & 0xFFFFFFFF for seed in seeds.get().ravel()), int(offset)]
        self._sources, self._drawn = {}, None

    def _source(self, chosen):
        """NumPy's or CuPy's generator."""
        key = type(chosen)
        if key not in self._sources:
            seed = np.random.SeedSequence(self._entropy)
            if isinstance(chosen, _compute.CuPy):
                random = chosen.module.random
                self._sources[key] = random.Generator(getattr(random, self._kind)(int(seed.generate_state(1)[0])))
            else:
                self._sources[key] = np.random.default_rng(seed)
        return self._sources[key]

    def _fill(self, draw, data, stream):
        chosen = _compute.library()
        if not data.size:
            return
        if chosen is None:
            self._set(draw, self._source(None), data, stream)
            return
        queue = _memory._stream(stream) or gpuglue.current_stream()
        if self._drawn is not None:
            queue.wait(self._drawn)  # CuPy keeps the generator's state in the device's memory
        with chosen.views([data], stream) as (target,):
            target[...] = draw(self._source(chosen), chosen.module, data.shape, data.dtype, lambda: target)
        if isinstance(chosen, _compute.CuPy):
            self._drawn = self._drawn or gpuglue.Event(queue.device)
            self._drawn.record(queue)

    @staticmethod
    def _set(draw, source, data, stream):
        def given():
            if stream is not None:
                stream.synchronize()
            return data.get()

        data.set_async(draw(source, np, data.shape, data.dtype, given), stream)

    def fill_uniform(self, data, stream=None):
        """Fill an array with uniform numbers.

        Parameters
        ----------
        data : GPUArray
            Of float32 or float64, for numbers from 0 up to 1, or of integers of 4 or 8 bytes, for any.
        stream : Stream, optional
            The stream. None is the current one.

        Raises
        ------
        NotImplementedError
            If the array has another dtype.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> x = gpuarray.empty(3, np.float32)
        >>> curandom.XORWOWRandomNumberGenerator().fill_uniform(x)
        >>> bool((x.get() < 1).all())
        True
        """
        self._fill(_uniform, data, stream)

    def fill_normal(self, data, stream=None):
        """Fill an array with normal numbers of mean 0 and standard deviation 1.

        Parameters
        ----------
        data : GPUArray
            Of float32 or float64.
        stream : Stream, optional
            The stream. None is the current one.

        Raises
        ------
        NotImplementedError
            If the array has another dtype.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().fill_normal(gpuarray.empty(3, np.float32))
        """
        self._fill(_normal, data, stream)

    def fill_log_normal(self, data, mean, stddev, stream=None):
        """Fill an array with numbers whose logarithm is normal.

        Parameters
        ----------
        data : GPUArray
            Of float32 or float64.
        mean : float
            Mean of the logarithm.
        stddev : float
            Standard deviation of the logarithm.
        stream : Stream, optional
            The stream. None is the current one.

        Raises
        ------
        NotImplementedError
            If the array has another dtype.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().fill_log_normal(gpuarray.empty(3, np.float32), 0, 1)
        """
        self._fill(lambda source, module, shape, dtype, given: module.exp(_normal(source, module, shape, dtype, given) * dtype.type(stddev)
                                                                          + dtype.type(mean)), data, stream)

    def fill_poisson(self, data, lambda_value=None, stream=None):
        """Fill an array with Poisson numbers.

        Parameters
        ----------
        data : GPUArray
            Of any real type.
        lambda_value : float, optional
            Mean of the numbers. None is that each element of the array is the mean of its number.
        stream : Stream, optional
            The stream. None is the current one.

        Raises
        ------
        ValueError
            If the mean is negative.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().fill_poisson(gpuarray.empty(3, np.uint32), 5)
        """
        def draw(source, module, shape, dtype, given):
            return source.poisson(given() if lambda_value is None else lambda_value, shape).astype(dtype)

        self._fill(draw, data, stream)

    def gen_uniform(self, shape, dtype, stream=None):
        """Make an array of uniform numbers.

        Parameters
        ----------
        shape : int or sequence of int
            Length of each dimension.
        dtype : dtype
            As of `fill_uniform`.
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        GPUArray
            The numbers.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().gen_uniform((2, 3), np.float32).shape
        (2, 3)
        """
        return self._made(self.fill_uniform, shape, dtype, stream)

    def gen_normal(self, shape, dtype, stream=None):
        """Make an array of normal numbers.

        Parameters
        ----------
        shape : int or sequence of int
            Length of each dimension.
        dtype : dtype
            Either float32 or float64.
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        GPUArray
            The numbers.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().gen_normal(3, np.float64).dtype
        dtype('float64')
        """
        return self._made(self.fill_normal, shape, dtype, stream)

    def gen_log_normal(self, shape, dtype, mean, stddev, stream=None):
        """Make an array of numbers whose logarithm is normal.

        Parameters
        ----------
        shape : int or sequence of int
            Length of each dimension.
        dtype : dtype
            Either float32 or float64.
        mean : float
            Mean of the logarithm.
        stddev : float
            Standard deviation of the logarithm.
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        GPUArray
            The numbers.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().gen_log_normal(3, np.float64, 0, 1).shape
        (3,)
        """
        return self._made(self.fill_log_normal, shape, dtype, stream, mean, stddev)

    def gen_poisson(self, shape, dtype, lambda_value, stream=None):
        """Make an array of Poisson numbers.

        Parameters
        ----------
        shape : int or sequence of int
            Length of each dimension.
        dtype : dtype
            Any real type.
        lambda_value : float
            Mean of the numbers.
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        GPUArray
            The numbers.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().gen_poisson(3, np.uint32, 5).shape
        (3,)
        """
        return self._made(self.fill_poisson, shape, dtype, stream, lambda_value)

    @staticmethod
    def _made(fill, shape, dtype, stream, *args):
        data = gpuarray.empty(shape, dtype)
        fill(data, *args, stream=stream)
        return data


_DOC = """A generator of random numbers.

    Parameters
    ----------
    seed_getter : function, optional
        Called with a length; returns a GPUArray of seeds, as `seed_getter_uniform` does, which is the default.
    offset : int, default 0
        Equal seeds with another offset give other numbers.

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


class XORWOWRandomNumberGenerator(_Generator):
    __doc__ = _DOC.format(name="XORWOWRandomNumberGenerator", which="The algorithm is XORWOW with CuPy, and PCG64 with NumPy.")
    _kind = "XORWOW"


class MRG32k3aRandomNumberGenerator(_Generator):
    __doc__ = _DOC.format(name="MRG32k3aRandomNumberGenerator", which="The algorithm is MRG32k3a with CuPy, and PCG64 with NumPy.")
    _kind = "MRG32k3a"


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

    def call_skip_ahead(self, i, stream=None):
        """Skip numbers of every generator.

        Parameters
        ----------
        i : int
            How many.
        stream : Stream, optional
            Not used: the state is on the host.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> vectors = gpuarray.to_gpu(np.uint32(1) << np.arange(31, -1, -1).astype(np.uint32))
        >>> generator = curandom.Sobol32RandomNumberGenerator(vectors)
        >>> generator.call_skip_ahead(2)
        >>> generator.gen_uniform(2, np.float32).get()
        array([0.75, 0.25], dtype=float32)
        """
        self._sequences.skip(int(i))

    def call_skip_ahead_array(self, i, stream=None):
        """Skip numbers of each generator.

        Parameters
        ----------
        i : GPUArray
            How many of each.
        stream : Stream, optional
            Not used: the state is on the host.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> vectors = gpuarray.to_gpu(np.uint32(1) << np.arange(31, -1, -1).astype(np.uint32))
        >>> generator = curandom.Sobol32RandomNumberGenerator(vectors)
        >>> generator.call_skip_ahead_array(gpuarray.to_gpu(np.array([2])))
        """
        self._sequences.skip(i.get())


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
