"""What the generators of curandom share. On host NumPy draws; elsewhere CuPy, or NumPy with a copy to the device."""

import numpy as np

import gpuglue

from . import _compute, _memory, gpuarray


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


def _advance(source, words):
    """Skip words of NumPy's generator, which may keep half of a number of 8 bytes."""
    if words and source.bit_generator.state["has_uint32"]:
        source.random(dtype=np.float32)
        words -= 1
    if words > 1:
        source.bit_generator.advance(words // 2)
    if words % 2:
        source.random(dtype=np.float32)


def _drop(source, words):
    """Skip words of CuPy's generator, by drawing them."""
    for at in range(0, words, 1 << 24):
        source.random(min(words - at, 1 << 24), np.float32)


def _count(counts):
    """The count for one generator."""
    if np.size(counts) != 1:
        raise ValueError(f"{np.size(counts)} counts for one generator: expected block_count * generators_per_block, which is 1")
    count = int(np.ravel(counts)[0])
    if count < 0:
        raise ValueError(f"skip {count} numbers: expected 0 or more")
    return count


class _Generator:
    """What the generators share."""

    _kind, _subsequences = "", 1  # of each sequence
    generators_per_block = block_count = 1

    def __init__(self, seed_getter=None, offset=0):
        seeds = (seed_getter or seed_getter_uniform)(1)
        self._entropy = [int(seed) & 0xFFFFFFFF for seed in seeds.get().ravel()]
        self._place, self._subsequence = _count(offset), 0  # the place is a count of numbers of 4 bytes
        self._sources, self._drawn = {}, None

    def _source(self, chosen):
        """NumPy's or CuPy's generator at its place."""
        key = type(chosen)
        if key not in self._sources:
            seed = np.random.SeedSequence(self._entropy, spawn_key=(self._subsequence,))
            if isinstance(chosen, _compute.CuPy):
                random = chosen.module.random
                self._sources[key] = random.Generator(getattr(random, self._kind)(int(seed.generate_state(1)[0]))), 0
            else:
                self._sources[key] = np.random.default_rng(seed), 0
        source, at = self._sources[key]
        (_drop if isinstance(chosen, _compute.CuPy) else _advance)(source, self._place - at)
        self._sources[key] = source, self._place
        return source

    def _drew(self, chosen, data):
        self._place += data.nbytes // 4
        self._sources[type(chosen)] = self._sources[type(chosen)][0], self._place

    def _fill(self, draw, data, stream):
        chosen = _compute.library()
        if not data.size:
            return
        if chosen is None:
            self._set(draw, self._source(None), data, stream)
            self._drew(None, data)
            return
        queue = _memory._stream(stream) or gpuglue.current_stream()
        if self._drawn is not None:
            queue.wait(self._drawn)  # CuPy keeps the generator's state in the device's memory
        with chosen.views([data], stream) as (target,):
            target[...] = draw(self._source(chosen), chosen.module, data.shape, data.dtype, lambda: target)
        self._drew(chosen, data)
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

    def _skip(self, counts):
        self._place += _count(counts)

    def call_skip_ahead(self, i, stream=None):
        """Skip numbers.

        Parameters
        ----------
        i : int
            How many, each of 4 bytes, of each generator. CuPy draws them all.
        stream : Stream, optional
            Not used: the next draw skips them on its stream.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> vectors = gpuarray.to_gpu(np.uint32(1) << np.arange(31, -1, -1).astype(np.uint32))
        >>> generator = curandom.Sobol32RandomNumberGenerator(vectors)
        >>> generator.call_skip_ahead(2)
        >>> generator.gen_uniform(2, np.float32).get()
        array([0.75, 0.25], dtype=float32)
        """
        self._skip(int(i))

    def call_skip_ahead_array(self, i, stream=None):
        """Skip numbers of each generator.

        Parameters
        ----------
        i : GPUArray
            How many of each. The pseudorandom generators are one each.
        stream : Stream, optional
            Not used.

        Examples
        --------
        >>> from gpuglue.compat.pycuda import curandom
        >>> curandom.XORWOWRandomNumberGenerator().call_skip_ahead_array(gpuarray.to_gpu(np.array([2])))
        """
        self._skip(i.get())

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
