"""Communicator.from_dask: the workers of a Dask cluster as ranks."""

import importlib
import uuid
from typing import Any

from . import _core

_POLL = 1.0  # seconds between two checks of which workers are left
_here: "dict[str, Any]" = {}  # in a worker: the communicators of this process, by id


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

    Attributes
    ----------
    addresses : tuple of str
        Address of the worker of each rank.
    """

    def __init__(self, client: Any, addresses: "tuple[str, ...]", timeout: "float | None"):
        self.addresses = addresses
        self._client, self._id = client, uuid.uuid4().hex
        host = _host(addresses)
        port = self._on([addresses[0]], [(_free_port, host)])[0]
        size = len(addresses)
        self._on(addresses, [(_create, self._id, rank, size, f"{host}:{port}", timeout) for rank in range(size)])

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
        all ranks must call operations in the same order.
        """
        if self._client is None:
            raise _core.InvalidArgumentError("the communicator is closed")
        return self._on(self.addresses, [(_call, self._id, function, args, kwargs)] * self.size)

    def close(self) -> None:
        """Close the communicator on the workers that are left. A second call does nothing."""
        client, self._client = self._client, None
        if client is None or client.status != "running":
            return
        left = [address for address in self.addresses if address in _workers(client)]
        client.run(_close, self._id, workers=left, on_error="ignore")

    def _on(self, addresses: Any, calls: "list[tuple[Any, ...]]") -> "list[Any]":
        """The results of one task on each worker; what one of them raises ends the others' wait."""
        client = self._client
        futures = [client.submit(*call, workers=[address], pure=False) for address, call in zip(addresses, calls)]
        try:
            self._wait(dict(zip(futures, addresses)))
            return client.gather(futures)
        except BaseException:
            client.cancel(futures, force=True)
            raise

    def _wait(self, pending: "dict[Any, str]") -> None:
        distributed = importlib.import_module("distributed")
        while pending:
            try:
                done = distributed.wait(list(pending), timeout=_POLL, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                done = set()
            for future in done:
                pending.pop(future)
                future.result()  # raises what the task raised
            self._check_workers(pending)

    def _check_workers(self, pending: "dict[Any, str]") -> None:
        left = _workers(self._client)  # else Dask would wait for a worker of this address
        lost = [address for address in pending.values() if address not in left]
        if lost:
            ranks = tuple(sorted(self.addresses.index(address) for address in lost))
            error: Any = _core.CommunicatorError(f"Dask lost the workers of ranks {', '.join(map(str, ranks))}: {', '.join(lost)}")
            error.ranks = ranks
            raise error


def from_dask(client: Any = None, workers: Any = None, timeout: "float | None" = 600.0) -> DaskCommunicator:
    """Create a communicator whose ranks are workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        Client of the cluster. None is the current one.
    workers : sequence of str, optional
        Addresses of the workers, in the order of their ranks. None is all of them.
    timeout : float or None, optional
        Seconds that the creation, and each wait for another rank, may take. None is no limit.

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
        If there is no such worker, or the client is asynchronous.
    UnsupportedError
        If the workers are on several machines.
    ImportError
        If distributed is not installed.

    See Also
    --------
    gpuglue.dask.LocalCluster : A cluster with one device for each worker.

    Notes
    -----
    If the function raises on one rank, the communicator is aborted: the other ranks do not wait for it.

    Examples
    --------
    >>> def total(comm, x):
    ...     return float(comm.all_reduce(np.full(1, x + comm.rank))[0])
    >>> with gg.Communicator.from_dask(client) as workers:  # doctest: +SKIP
    ...     workers.run(total, 1.0)
    [3.0, 3.0]
    """
    if client is None:
        client = importlib.import_module("distributed").get_client()
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
    return DaskCommunicator(client, addresses, timeout)


def _workers(client: Any) -> "list[str]":
    return list(client.nthreads())


def _host(addresses: "tuple[str, ...]") -> str:
    """The machine of all workers."""
    split = importlib.import_module("distributed.comm").get_address_host
    hosts = sorted({split(address) for address in addresses})
    if len(hosts) > 1:
        raise _core.UnsupportedError(
            f"the workers are on {', '.join(hosts)}, but one of Dask workers is within one machine: give workers= of one, or use Communicator.from_mpi"
        )
    return hosts[0]


# ---- in the worker


def _free_port(host: str) -> int:
    socket = importlib.import_module("socket")
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
        return server.getsockname()[1]


def _create(id: str, rank: int, size: int, address: str, timeout: "float | None") -> None:
    from . import _communicator

    _here[id] = _communicator.Communicator(rank, size, address, id=id, timeout=timeout)


def _call(id: str, function: Any, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> Any:
    comm = _here.get(id)
    if comm is None:
        raise _core.InvalidArgumentError("this worker does not have the communicator: it has been restarted since Communicator.from_dask")
    try:
        return function(comm, *args, **kwargs)
    except BaseException:
        comm.abort()  # the others would wait for this rank
        raise


def _close(id: str) -> None:
    comm = _here.pop(id, None)
    if comm is not None:
        comm.close()
