"""pycuda.curandom: arrays of random numbers. On host NumPy draws them; elsewhere CuPy, or NumPy with a copy to the device."""

import numpy as np

import gpuglue

from . import _compute, gpuarray
from ._missing import Refusing, refusing


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


def _uniform(source, module, shape, dtype):
    if dtype.kind in "iu" and dtype.itemsize in (4, 8):
        limits = np.iinfo(dtype)
        return source.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return source.random(shape, _float(dtype))


def _normal(source, module, shape, dtype):
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
            data.set_async(draw(self._source(None), np, data.shape, data.dtype), stream)
            return
        queue = stream._stream if stream is not None else gpuglue.current_stream()
        if self._drawn is not None:
            queue.wait(self._drawn)  # CuPy keeps the generator's state in the device's memory
        with chosen.views([data], stream) as (target,):
            target[...] = draw(self._source(chosen), chosen.module, data.shape, data.dtype)
        if isinstance(chosen, _compute.CuPy):
            self._drawn = self._drawn or gpuglue.Event(queue.device)
            self._drawn.record(queue)

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
        self._fill(lambda source, module, shape, dtype: module.exp(_normal(source, module, shape, dtype) * dtype.type(stddev)
                                                                   + dtype.type(mean)), data, stream)

    def fill_poisson(self, data, lambda_value, stream=None):
        """Fill an array with Poisson numbers.

        Parameters
        ----------
        data : GPUArray
            Of any real type.
        lambda_value : float
            Mean of the numbers.
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
        self._fill(lambda source, module, shape, dtype: source.poisson(lambda_value, shape).astype(dtype), data, stream)

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
