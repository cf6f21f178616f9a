"""The driver: initialisation and versions."""

import gpuglue

from ._errors import translated


@translated
def init(flags=0):
    """Initialise the default backend.

    Parameters
    ----------
    flags : int, default 0
        Not used.

    Raises
    ------
    RuntimeError
        If no backend can be used.

    Examples
    --------
    >>> drv.init()
    """
    gpuglue.devices(gpuglue.default_backend())


def get_version():
    """Return the version of CUDA whose interface is provided.

    Returns
    -------
    tuple of int
        Major, minor and patch.

    Examples
    --------
    >>> drv.get_version()
    (12, 0, 0)
    """
    return (12, 0, 0)


@translated
def get_driver_version():
    """Return the version of the driver.

    Returns
    -------
    int
        12040 for 12.4. For drivers of other vendors and on host, that of `get_version`: 12000.

    Raises
    ------
    RuntimeError
        If no backend can be used.

    Examples
    --------
    >>> drv.get_driver_version() >= 11000
    True
    """
    if gpuglue.default_backend() == "cuda":
        record = next(record for record in gpuglue.backends(probe="active") if record.name == "cuda")
        parts = (record.version or "0").split(".") + ["0"]
        return int(parts[0]) * 1000 + int(parts[1]) * 10
    major, minor, _ = get_version()
    return major * 1000 + minor * 10
