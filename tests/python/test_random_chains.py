"""Random chains of indexing, reshape, transpose, view, assignment and copies, done alike by NumPy: shapes, strides,
contents and the classes of exceptions are the same after every step."""

import os
import random

import numpy as np
import pytest

import gpuglue as gg

CHAINS = 5000 if os.environ.get("GPUGLUE_TEST_FULL") else 500
PARTS = 10
DTYPES = ["f8", "i4", "u1", "c16", "f2", "?", "S3", [("a", "i2"), ("b", "f8")]]


def shape_of(dice):
    return tuple(dice.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(dice.randrange(5)))


def bound(dice, length):
    return dice.choice([None, 0, 1, -1, length, -length - 1, dice.randint(-length - 2, length + 2)])


def item(dice, length):
    kind = dice.randrange(8)
    if kind < 2 and length:
        return dice.randrange(-length, length)
    if kind == 2:
        return dice.randint(-length - 2, length + 2)  # now and then out of bounds
    return slice(bound(dice, length), bound(dice, length), dice.choice([None, 1, 2, -1, -2, 3, -7]))


def index_of(dice, shape):
    used = shape[: dice.randint(0, len(shape))]
    items = [item(dice, length) for length in used]
    for extra in (Ellipsis, None):
        if dice.random() < 0.3:
            items.insert(dice.randint(0, len(items)), extra)
    if dice.random() < 0.05:
        items.append(0)  # perhaps one too many
    return items[0] if len(items) == 1 and dice.random() < 0.5 else tuple(items)


def factors(dice, size):
    """A shape of that many elements, or rarely of another number."""
    if dice.random() < 0.1:
        return tuple(dice.choice([2, 3, -1, -1, 0, 7]) for _ in range(dice.randrange(4)))
    shape = []
    while size > 1 and len(shape) < 4:
        part = dice.choice([n for n in range(1, size + 1) if size % n == 0])
        shape.append(part)
        size //= part
    shape.append(size)
    if dice.random() < 0.3:
        shape.insert(dice.randint(0, len(shape)), 1)
    if dice.random() < 0.3:
        shape[dice.randrange(len(shape))] = -1
    return tuple(shape)


def random_host(dice, shape, dtype):
    count = int(np.prod(shape, dtype=int))
    values = np.array([dice.randrange(100) for _ in range(count)], "i8")
    if np.dtype(dtype).names:
        host = np.zeros(count, dtype)
        host["a"], host["b"] = values, values / 3
        return host.reshape(shape)
    return values.astype(dtype).reshape(shape)


# Each step: from dice and an array's shape to a function of (module-neutral) array. `own` makes a GPUArray of
# an ndarray where the step's argument is an array of the same kind.


def step_index(dice, host):
    index = index_of(dice, host.shape)
    return lambda a, own: a[index] if own else np.asarray(a[index]) if not isinstance(a[index], np.ndarray) else a[index]


def step_reshape(dice, host):
    shape, order = factors(dice, host.size), dice.choice("CCCFA")
    if dice.random() < 0.5:
        return lambda a, own: a.reshape(shape, order=order)
    return lambda a, own: a.reshape(*shape, order=order) if shape else a.reshape((), order=order)


def step_transpose(dice, host):
    axes = list(range(host.ndim))
    dice.shuffle(axes)
    if dice.random() < 0.1:
        axes = axes + [0] if dice.random() < 0.5 else [axis + 1 for axis in axes]
    axes = [axis - host.ndim if dice.random() < 0.2 else axis for axis in axes]
    return dice.choice([lambda a, own: a.T, lambda a, own: a.transpose(), lambda a, own: a.transpose(axes)])


def step_squeeze(dice, host):
    axis = dice.choice([None, None, 0, -1, 1, 5])
    return lambda a, own: a.squeeze(axis)


def step_flat(dice, host):
    name, order = dice.choice(["ravel", "ravel", "flatten"]), dice.choice("CCFAK")
    return lambda a, own: getattr(a, name)(order)


def step_view(dice, host):
    dtype = dice.choice(["u1", "i2", "i4", "f4", "f8", "c16", "S3", [("x", "u1"), ("y", "u1")]])
    return lambda a, own: a.view(np.dtype(dtype))


def place_of(dice, host):
    """An index whose result is an array: for one element NumPy returns a scalar, which raises other errors."""
    index = index_of(dice, host.shape)
    items = index if isinstance(index, tuple) else (index,)
    return items if Ellipsis in items else (*items, Ellipsis)


def step_set_value(dice, host):
    index = place_of(dice, host)
    value = dice.choice([0, 7, True, 2.5, np.float32(1.5), [1], "x", b"y", 3 + 1j, 300])

    def change(a, own):
        a[index] = value
        return a

    return change


def step_set_array(dice, host):
    index, source = place_of(dice, host), place_of(dice, host)

    def change(a, own):
        a[index] = a[source]
        return a

    return change


def step_set_host(dice, host):
    index = place_of(dice, host)
    values = random_host(dice, shape_of(dice)[:2], dice.choice(["f8", "i4", "u1"]))

    def change(a, own):
        a[index] = values
        return a

    return change


def step_copy(dice, host):
    dtype = dice.choice([None, "f8", "i4", "u1"])
    return lambda a, own: (a.copy() if own else a.copy("K")) if dtype is None else a.astype(dtype)


STEPS = [step_index] * 4 + [step_reshape] * 2 + [step_transpose, step_squeeze, step_flat, step_view, step_copy]
STEPS += [step_set_value, step_set_array, step_set_host]


def outcome(function, array, own):
    try:
        return function(array, own), None
    except Exception as error:
        return None, error


def alike(made, host):
    assert made.shape == host.shape and made.dtype == host.dtype
    assert made.strides == host.strides
    assert (made.flags.c_contiguous, made.flags.f_contiguous) == (host.flags.c_contiguous, host.flags.f_contiguous)
    assert made.get().tobytes() == host.tobytes()


def run_chain(seed, device):
    dice = random.Random(seed)
    shape = shape_of(dice)
    host = random_host(dice, tuple(max(length, 1) for length in shape), dice.choice(DTYPES))
    if dice.random() < 0.3:
        host = np.asfortranarray(host)
    made = gg.to_gpu(host, device)
    if 0 in shape:  # for an empty array that is not a view, the strides differ between versions of NumPy
        empty = tuple(slice(0, length) for length in shape)
        host, made = host[empty], made[empty]
    root, made_root = host, made
    for number in range(dice.randint(2, 7)):
        step = dice.choice(STEPS)(dice, host)
        new_host, error = outcome(step, host, False)
        new_made, made_error = outcome(step, made, True)
        assert (error is None) == (made_error is None), (seed, number, error, made_error)
        if error is not None:
            assert isinstance(made_error, type(error)), (seed, number, error, made_error)
            continue
        host, made = new_host, new_made
        if not isinstance(host, np.ndarray):
            host = np.asarray(host)
        if isinstance(made, gg.GPUArray) and host.ndim == 0 and not np.shares_memory(host, root):
            made = gg.to_gpu(host, device)  # NumPy returned a scalar, which does not share the array's memory
        if not host.size and host.base is None:
            break
        alike(made, host)
    assert made_root.get().tobytes() == root.tobytes(), seed


@pytest.mark.filterwarnings("ignore:Casting complex values to real")  # as NumPy does
@pytest.mark.parametrize("part", range(PARTS))
def test_random_chains_give_the_same_as_numpy(device, part):
    for seed in range(part * CHAINS // PARTS, (part + 1) * CHAINS // PARTS):
        try:
            run_chain(seed, device)
        except BaseException:
            print("seed", seed)
            raise
