"""A job at the workers of a Dask cluster, also at those that join later, or start again."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

from distributed import WorkerPlugin, get_worker


class _Installed(WorkerPlugin):  # type: ignore[misc]
    """Brings a job to a worker."""

    def __init__(self, job: Callable[..., Any]) -> None:
        self.job = job


@contextmanager
def installed(client: Any, job: Callable[..., Any]) -> Iterator[Callable[..., Future[Any]]]:
    """Have a job done by the workers of a Dask cluster, which get it once.

    If a worker is lost, Dask has the others do what it had in hand.
    """
    name = f"pacplan-{uuid4().hex}"
    client.register_plugin(_Installed(job), name=name)
    try:
        yield partial(client.get_executor(pure=False).submit, _do, name)
    finally:
        if client.status == "running":
            client.unregister_worker_plugin(name)


def _do(name: str, *arguments: Any) -> Any:
    return get_worker().plugins[name].job(*arguments)
