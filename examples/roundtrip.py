"""There and back: a NumPy array to the device, another array there, and both fetched again.

    python examples/roundtrip.py

Runs on whatever device there is; without a GPU on the host backend.
"""

import numpy as np

import gpuglue as gpuarray


def main() -> None:
    """Copy an array to the device, on the device, and back, and compare."""
    original = np.arange(27, dtype=np.float32).reshape(3, 3, 3)

    on_device = gpuarray.to_gpu(original)
    print("device :", on_device.device)
    print("array  :", on_device)

    # An array that is made on the device has no particular content until something is written to it.
    result = gpuarray.GPUArray((3, 3, 3), dtype=np.float32)
    gpuarray.copy(result, on_device)

    # What every other library needs: the address, with shape, dtype and strides beside it.
    print("address:", hex(result.ptr), result.shape, result.dtype, result.strides)

    fetched = result.get()
    print(fetched)
    assert np.array_equal(fetched, original)

    # New values from the host, into memory that is there already.
    result.set(original * 2)
    assert np.array_equal(result.get(), original * 2)
    print("round trip: right")


if __name__ == "__main__":
    main()
