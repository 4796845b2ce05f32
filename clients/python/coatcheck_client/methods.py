"""Operations as methods: a flow, written once, becomes a method that blocks or one that is awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, ParamSpec, Protocol, TypeVar, overload

from coatcheck_client.flows import Flow

P = ParamSpec("P")
T = TypeVar("T")


class RunsBlocking(Protocol):
    """Carries out a flow, blocking."""

    def run(self, flow: Flow[T]) -> T: ...


class RunsAwaiting(Protocol):
    """Carries out a flow."""

    async def run(self, flow: Flow[T]) -> T: ...


class Blocking(Generic[P, T]):
    """An operation as a blocking method."""

    def __init__(self, operation: Callable[P, Flow[T]]) -> None:
        self._operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Flow[T]]: ...
    @overload
    def __get__(self, client: RunsBlocking, owner: type) -> Callable[P, T]: ...
    def __get__(self, client: RunsBlocking | None, owner: type) -> Callable[P, T] | Callable[P, Flow[T]]:
        if client is None:
            return self._operation
        front = client

        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return front.run(self._operation(*args, **kwargs))

        return method


class Awaiting(Generic[P, T]):
    """An operation as an awaitable method."""

    def __init__(self, operation: Callable[P, Flow[T]]) -> None:
        self._operation = operation
        self.__doc__ = operation.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Flow[T]]: ...
    @overload
    def __get__(self, client: RunsAwaiting, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: RunsAwaiting | None, owner: type) -> Callable[P, Awaitable[T]] | Callable[P, Flow[T]]:
        if client is None:
            return self._operation
        front = client

        def method(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            return front.run(self._operation(*args, **kwargs))

        return method
