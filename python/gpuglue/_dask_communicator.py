"""Communicator.from_dask: the workers of a Dask cluster as ranks."""

import asyncio
import contextlib
import importlib
import time
import uuid
from typing import Any

from . import _core
from ._communicator_device import ReservedPort, check_transport, warn_staged

_POLL = 1.0  # seconds between two checks of which workers are left
_GRACE = 5.0  # seconds that the other ranks have to report the cause of a CommunicatorError
_here: "dict[str, Any]" = {}  # in a worker: the communicators of this process, by id; before, the port of rank 0


class DaskCommunicator:
    """A communicator whose ranks are workers of a Dask cluster, seen from the client.

    `Communicator.from_dask` makes it. It is a context manager that closes the communicator on all workers.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    addresses : sequence of str
        Address of the worker of each rank.
    timeout : float or None
        Seconds that the creation, and each wait of a rank for another, may take.
    devices : sequence
        Device of each rank, or None for its worker's own.
    transport : str
        As for `Communicator`.

    Attributes
    ----------
    addresses : tuple of str
        Address of the worker of each rank.
    transport : str
        That of the ranks: see `Communicator.transport`.
    """

    def __init__(self, client: Any, addresses: "tuple[str, ...]", timeout: "float | None", devices: "list[Any]", transport: str):
        self.addresses = addresses
        self._client, self._id = client, uuid.uuid4().hex
        try:
            self.transport, reason = self._create(timeout, devices, transport)
        except BaseException:
            self._end(client, "close", _GRACE)  # on the workers that have created their rank
            raise
        if reason:
            warn_staged(self.transport, reason)

    def _create(self, timeout: "float | None", devices: "list[Any]", transport: str) -> "tuple[str, str]":
        end = float("inf") if timeout is None else time.monotonic() + timeout + _POLL  # a rank's own error comes before
        host = importlib.import_module("distributed.comm").get_address_host(self.addresses[0])
        port = self._on(self.addresses[:1], [(_reserve, self._id, host)], end)[0]
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        calls = [(_create, self._id, rank, self.size, place, timeout, device, transport) for rank, device in enumerate(devices)]
        return self._on(self.addresses, calls, end)[0]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.addresses)

    def __repr__(self) -> str:
        return f"<gpuglue.DaskCommunicator of {self.size} workers{'' if self._client else ', closed'}>"

    def __enter__(self) -> "DaskCommunicator":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def run(self, function: Any, *args: Any, **kwargs: Any) -> "list[Any]":
        """Call a function on all ranks at the same time.

        Parameters
        ----------
        function : callable
            Called as ``function(comm, *args, **kwargs)`` with the `Communicator` of the worker.
        *args
            Arguments, the same on all ranks.
        **kwargs
            Keyword arguments, the same on all ranks.

        Returns
        -------
        list
            What the function returned, in the order of the ranks.

        Raises
        ------
        CommunicatorError
            If a worker is lost; `CommunicatorError.ranks` names its rank.
        InvalidArgumentError
            If this communicator is closed, or a worker has been restarted since.
        Exception
            What the function raised on a rank. The communicator is then aborted on all ranks.

        Notes
        -----
        The function is a task of each worker: it begins when a thread of the worker is free. Run one at a time, because
        all ranks must call operations in the same order. Ctrl-C aborts the communicator on all ranks.
        """
        if self._client is None:
            raise _core.InvalidArgumentError("the communicator is closed")
        try:
            return self._on(self.addresses, [(_call, self._id, function, args, kwargs)] * self.size)
        except BaseException:
            self._end(self._client, "abort", _GRACE)  # ranks that wait for others go on
            raise

    def close(self) -> None:
        """Close the communicator on the workers that are left. A second call does nothing."""
        client, self._client = self._client, None
        if client is not None:
            self._end(client, "close")

    def _end(self, client: Any, method: str, seconds: "float | None" = None) -> None:
        """Call a method of the communicator on the workers that are left; one that has stopped is waited for so many seconds."""
        if client.status == "running":
            left = [address for address in self.addresses if address in _workers(client)]
            with contextlib.suppress(TimeoutError):
                client.run(_end, self._id, method, workers=left, on_error="ignore", callback_timeout=seconds)

    def _on(self, addresses: Any, calls: "list[tuple[Any, ...]]", end: float = float("inf")) -> "list[Any]":
        """The results of one task on each worker until a time; what one of them raises ends the others' wait."""
        client = self._client
        futures = [client.submit(*call, workers=[address], pure=False) for address, call in zip(addresses, calls)]
        try:
            self._wait(dict(zip(futures, addresses)), end)
            return client.gather(futures)
        except BaseException:
            client.cancel(futures, force=True)
            raise

    def _wait(self, pending: "dict[Any, str]", end: float) -> None:
        distributed = importlib.import_module("distributed")
        failed: Any = None
        error: Any = None
        while pending and time.monotonic() < end:
            try:
                done = distributed.wait(list(pending), timeout=_POLL, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                done = set()
            for future in done:
                pending.pop(future)
                if future.status != "error" or not isinstance(future.exception(), _core.CommunicatorError):
                    future.result()  # raises what the task raised
                elif failed is None:  # the rank that caused it has an error of its own, which may come later
                    failed, error = future, future.exception()
                    end = min(end, time.monotonic() + (0 if " within " in str(error) else _GRACE))
            left = _workers(self._client)  # else Dask would wait for a worker of this address
            self._name("Dask lost", [address for address in pending.values() if address not in left])
        late = [address for address in pending.values() if not failed or self.addresses.index(address) in (error.ranks or ())]
        self._name(f"{error or 'the communicator was not created in time'}; no answer or free thread in", late)
        if failed:
            failed.result()

    def _name(self, text: str, addresses: "list[str]") -> None:
        """Raise an error about these workers, if there are any."""
        if addresses:
            ranks = tuple(sorted(map(self.addresses.index, addresses)))
            error: Any = _core.CommunicatorError(f"{text} the workers of ranks {', '.join(map(str, ranks))}: {', '.join(addresses)}")
            error.ranks = ranks
            raise error


def from_dask(
    client: Any = None, workers: Any = None, timeout: "float | None" = 600.0, *, device: Any = None, transport: str = "auto"
) -> DaskCommunicator:
    """Create a communicator whose ranks are workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        Client of the cluster. None is the current one.
    workers : sequence of str, optional
        Addresses of the workers, in the order of their ranks. None is all of them.
    timeout : float or None, optional
        Seconds that the creation, and each wait for another rank, may take. None is no limit.
    device : Device, int, str or sequence, optional
        Device of each rank as its worker numbers them: one for all, or a sequence with one for each. None is the worker's own: its
        current device, as `gpuglue.dask.LocalCluster` assigns it, and no device if that is the processor.
    transport : {'auto', 'nccl', 'rccl', 'host', 'staged'}, optional
        How arrays in device memory reach other ranks: see `Communicator`.

    Returns
    -------
    DaskCommunicator
        ``run(function, *args)`` calls ``function(comm, *args)`` on all ranks at the same time and returns the list of
        results; ``close()`` closes the communicator. It is a context manager.

    Raises
    ------
    CommunicatorError
        If a worker is lost, or the ranks do not connect in time.
    InvalidArgumentError
        If there is no such worker or transport, `device` has another length, or the client is asynchronous.
    UnsupportedError
        If the transport cannot be used. Workers on several machines need NCCL or RCCL.
    ImportError
        If distributed is not installed.

    See Also
    --------
    gpuglue.dask.LocalCluster : A cluster with one device for each worker.

    Notes
    -----
    If the function raises on one rank, the communicator is aborted: the other ranks do not wait for it.

    A rank is created when a thread of its worker is free. The error names workers that were not free within the timeout. Ctrl-C during the
    creation does not end the other ranks' part of it: they wait until the timeout.

    Examples
    --------
    >>> def total(comm, x):
    ...     return float(comm.all_reduce(np.full(1, x + comm.rank))[0])
    >>> with gg.Communicator.from_dask(client) as workers:  # doctest: +SKIP
    ...     workers.run(total, 1.0)
    [3.0, 3.0]
    """
    if client is None:
        client = importlib.import_module("gpuglue.dask")._distributed().get_client()
    if getattr(client, "asynchronous", False):
        raise _core.InvalidArgumentError("client is asynchronous, expected one whose calls wait: Client(cluster)")
    known = _workers(client)
    addresses = tuple(known if workers is None else workers)
    unknown = [address for address in addresses if address not in known]
    if not addresses or unknown:
        given = f"{unknown[0]!r} is not a worker" if unknown else "there is no worker"
        raise _core.InvalidArgumentError(f"{given}: the cluster has {', '.join(known) or 'none'}")
    if len(set(addresses)) != len(addresses):
        raise _core.InvalidArgumentError(f"workers is {list(addresses)}, expected each address once: a worker is one rank")
    check_transport(transport)
    return DaskCommunicator(client, addresses, timeout, _devices(device, len(addresses)), transport)


def _workers(client: Any) -> "list[str]":
    return list(client.nthreads())


def _devices(given: Any, size: int) -> "list[Any]":
    """What the workers make a device of."""
    each = list(given) if isinstance(given, (list, tuple)) else [given] * size
    if len(each) != size:
        raise _core.InvalidArgumentError(f"device has {len(each)} devices, expected one for each of {size} workers")
    return [f"{one.backend}:{one.ordinal}" if isinstance(one, _core.Device) else one for one in each]


# ---- in the worker


def _reserve(id: str, host: str) -> int:
    """A port that is free until rank 0 listens on it."""
    _here[id] = ReservedPort(host)
    return _here[id].number


def _create(
    id: str, rank: int, size: int, address: str, timeout: "float | None", device: Any, transport: str
) -> "tuple[str, str]":
    """The transport, and why it is not a library's."""
    from . import _communicator

    own: Any = _core.current_device() if device is None else _core.Device(device)
    own = None if device is None and own.backend == "host" else own
    port = _here.pop(id, None)  # of rank 0
    try:
        comm = _here[id] = _communicator.Communicator(rank, size, address, id=id, timeout=timeout, device=own, transport=transport)
    finally:
        if port is not None:
            port.close()
    return comm._transport.name, comm._transport.reason


def _call(id: str, function: Any, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> Any:
    comm = _here.get(id)
    if comm is None:
        raise _core.InvalidArgumentError("this worker does not have the communicator: it has been restarted since Communicator.from_dask")
    try:
        return function(comm, *args, **kwargs)
    except BaseException:
        comm.abort()  # the others would wait for this rank
        raise


async def _end(id: str, method: str) -> None:
    comm = _here.pop(id, None) if method == "close" else _here.get(id)
    if hasattr(comm, method):
        await asyncio.to_thread(getattr(comm, method))  # the event loop does not wait
