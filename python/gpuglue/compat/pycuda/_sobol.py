"""Sobol's sequences, as the generators of CURAND give them: generator t of n draws the elements t, t + n, t + 2 n, … by its own
direction vector. NumPy computes them, and SciPy has the table of direction numbers."""

import math
from statistics import NormalDist

import numpy as np

from . import gpuarray
from ._enums import _Number

_COUNT = 1024  # generators, unless there are vectors for another number of them
_MOST = 20000  # as CURAND


class direction_vector_set(_Number):
    """Sets of direction vectors."""

    VECTOR_32 = 101
    SCRAMBLED_VECTOR_32 = 102
    VECTOR_64 = 103
    SCRAMBLED_VECTOR_64 = 104


def _bits(direction):
    return 64 if direction in (direction_vector_set.VECTOR_64, direction_vector_set.SCRAMBLED_VECTOR_64) else 32


def _word(bits):
    return np.dtype(f"u{bits // 8}")


def _numbers(count, bits):
    """Direction numbers, a row for each dimension; the first number has the highest bit."""
    if not 1 <= count <= _MOST:
        raise ValueError(f"there are direction vectors for 1 to {_MOST} generators: got {count}")
    try:
        from scipy.stats import qmc  # type: ignore
    except ImportError:
        raise ImportError("the direction numbers of Sobol's sequences are SciPy's: pip install scipy") from None
    # The points at 1, 2, 4, … are no sums of others in Gray code's order: x(2^j) = x(2^j - 1) ^ v(j).
    return np.ascontiguousarray(qmc.Sobol(count, scramble=False, bits=bits)._sv[:, :bits], _word(bits))


def generate_direction_vectors(count, direction=direction_vector_set.VECTOR_32):
    """Return direction vectors for generators.

    Parameters
    ----------
    count : int
        Number of generators, up to 20000.
    direction : direction_vector_set
        For which generators. Those of the scrambled ones are the same: the scramble constants distinguish them.

    Returns
    -------
    GPUArray
        A vector of 32 or 64 numbers for each generator.

    Raises
    ------
    ImportError
        If SciPy, which has the table, is not installed.
    ValueError
        If the count is 0 or too large.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> # with SciPy: vectors = curandom.generate_direction_vectors(3)
    """
    return gpuarray.to_gpu(_numbers(int(count), _bits(direction)))


def generate_scramble_constants32(count):
    """Return scramble constants for generators.

    Parameters
    ----------
    count : int
        Number of generators.

    Returns
    -------
    GPUArray
        Random numbers of uint32.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> curandom.generate_scramble_constants32(3).dtype
    dtype('uint32')
    """
    return gpuarray.to_gpu(_constants(count, 32))


def generate_scramble_constants64(count):
    """Return scramble constants for generators.

    Parameters
    ----------
    count : int
        Number of generators.

    Returns
    -------
    GPUArray
        Random numbers of uint64.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> curandom.generate_scramble_constants64(3).dtype
    dtype('uint64')
    """
    return gpuarray.to_gpu(_constants(count, 64))


def _constants(count, bits):
    return np.random.default_rng().integers(0, 2**bits, int(count), _word(bits))


def get_curand_version():
    """Return None, as PyCUDA does where it has no CURAND.

    Returns
    -------
    None
        The numbers are NumPy's or CuPy's.

    Examples
    --------
    >>> from gpuglue.compat.pycuda import curandom
    >>> curandom.get_curand_version() is None
    True
    """
    return None


class Sequences:
    """The state of the generators; the names of its methods are those of NumPy's Generator."""

    def __init__(self, vectors, scramble, offset):
        self.vectors, self.scramble = vectors, scramble
        self.drawn = np.full(len(vectors), offset, np.uint64)  # of each generator

    def skip(self, counts):
        self.drawn += np.asarray(counts).astype(np.uint64)  # modulo 2^64, so that negative ones go back

    def words(self, shape):
        size = math.prod(shape) if isinstance(shape, tuple) else int(shape)
        count, bits = self.vectors.shape
        rounds = -(-size // count)
        step = np.arange(rounds, dtype=np.uint64)[:, None] + self.drawn
        gray, found = step ^ (step >> np.uint64(1)), np.zeros(step.shape, self.vectors.dtype)
        for bit in range(bits):
            found ^= np.where(gray >> np.uint64(bit) & np.uint64(1), self.vectors[:, bit], self.vectors.dtype.type(0))
        taken = np.full(count, rounds, np.uint64)
        taken[size - (rounds - 1) * count:] -= np.uint64(1 if size else 0)
        self.drawn += taken
        return (found ^ self.scramble).reshape(-1)[:size].reshape(shape)

    def integers(self, low, high, shape, dtype, endpoint):
        if dtype.itemsize * 8 > self.vectors.shape[1]:
            raise NotImplementedError(f"random numbers of {dtype} from a sequence of 32 bits: use Sobol64RandomNumberGenerator")
        words = self.words(shape)
        return (words >> words.dtype.type(words.itemsize * 8 - dtype.itemsize * 8)).astype(f"u{dtype.itemsize}").view(dtype)

    def random(self, shape, dtype):
        bits = self.vectors.shape[1]
        return ((self.words(shape).astype(np.float64) + 0.5) * 2.0**-bits).astype(dtype)

    def standard_normal(self, shape, dtype):
        inverse = np.frompyfunc(NormalDist().inv_cdf, 1, 1)
        limit = 1 - 2.0**-53  # the largest number below 1: 64 bits may be rounded to 1
        return inverse(np.minimum(self.random(shape, np.float64), limit)).astype(dtype)

    def poisson(self, mean, shape):
        uniform, found = self.random(shape, np.float64), np.empty(shape, np.int64)
        for one in np.unique(mean):
            found[mean == one] = self._poisson(float(one), uniform[mean == one])
        return found

    @staticmethod
    def _poisson(mean, uniform):
        if mean < 0:
            raise ValueError(f"the mean of Poisson numbers is not negative: got {mean}")
        most = int(mean + 20 * math.sqrt(mean) + 40)
        logarithms = [k * math.log(mean) - mean - math.lgamma(k + 1) if mean else -math.inf * (k > 0) if k else 0.0 for k in range(most)]
        return np.searchsorted(np.cumsum(np.exp(logarithms)), uniform)
