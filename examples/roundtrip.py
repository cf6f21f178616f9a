"""A round trip: copy a NumPy array to the device, on the device, and back to the host.

    python examples/roundtrip.py

It runs on any device; without a GPU on the host backend.
"""

import numpy as np

import gpuglue as gpuarray


def main() -> None:
    """Copy an array to the device, on the device, and back, and compare."""
    original = np.arange(27, dtype=np.float32).reshape(3, 3, 3)

    on_device = gpuarray.to_gpu(original)
    print("device :", on_device.device)
    print("array  :", on_device)

    # A new array is uninitialised.
    result = gpuarray.GPUArray((3, 3, 3), dtype=np.float32)
    gpuarray.copy(result, on_device)

    # Other libraries need the address, with shape, dtype and strides.
    print("address:", hex(result.ptr), result.shape, result.dtype, result.strides)

    fetched = result.get()
    print(fetched)
    assert np.array_equal(fetched, original)

    # Copy new values from the host into existing device memory.
    result.set(original * 2)
    assert np.array_equal(result.get(), original * 2)
    print("round trip: correct")


if __name__ == "__main__":
    main()
