"""What is watched from the first round to the last: device memory, whether the server answers, whether it is still the same one."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx

MEMORY_COMMAND = "nvidia-smi --query-gpu=memory.used,memory.free --format=csv,noheader,nounits"
"""One line a device: MiB used and free. Of the whole device, with what others hold of it."""
_STARTED = re.compile(r"^process_start_time_seconds(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
HEALTH_LIMIT_S = 10.0
"""For each thing that is looked at: a server that trickles, or a driver that hangs, is not to hold up the run's end."""
_MOST_METRICS = 16 * 1024 * 1024


@dataclass(slots=True)
class Watched:
    """What was seen. Samples come at intervals: a short peak between two is not in them."""

    used_mib: dict[int, int] = field(default_factory=dict)
    """The most, by device."""
    free_mib: dict[int, int] = field(default_factory=dict)
    """The least, by device."""
    memory_samples: int = 0
    looks: int = 0
    away: int = 0
    """Looks at the server at which it refused the connection, or said that its engine is dead."""
    slow: int = 0
    """Looks that it did not answer in time, which a busy server may do."""
    starts: set[str] = field(default_factory=set)
    """What told one start of the server from another. Of several API servers behind one address each is a start of its own."""

    @property
    def restarts(self) -> int | None:
        """None where nothing was there to tell one start from another."""
        return len(self.starts) - 1 if self.starts else None


@dataclass(frozen=True, slots=True)
class Watch:
    """How to look: at which server, at which container (None for the process that ``/metrics`` tells of), how often."""

    root: str
    """The endpoint's address without its path."""
    container: str | None
    memory_command: str
    every_s: float

    async def look(self, client: httpx.AsyncClient, seen: Watched) -> None:
        """Once at everything."""
        seen.looks += 1
        await asyncio.gather(self._memory(seen), self._health(client, seen), self._identity(client, seen))

    @asynccontextmanager
    async def running(self, client: httpx.AsyncClient, seen: Watched) -> AsyncIterator[None]:
        """Looks at everything again and again while the block runs."""

        async def again_and_again() -> None:
            while True:
                await self.look(client, seen)
                await asyncio.sleep(self.every_s)

        task = asyncio.create_task(again_and_again())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _memory(self, seen: Watched) -> None:
        output = await _output_of(shlex.split(self.memory_command))
        if output is None:
            return
        seen.memory_samples += 1
        for device, line in enumerate(output.splitlines()):
            with suppress(ValueError):
                used, free = (int(part) for part in line.split(","))
                seen.used_mib[device] = max(used, seen.used_mib.get(device, used))
                seen.free_mib[device] = min(free, seen.free_mib.get(device, free))

    async def _health(self, client: httpx.AsyncClient, seen: Watched) -> None:
        try:
            status, _ = await _got(client, f"{self.root}/health", 0)
        except (httpx.TimeoutException, TimeoutError):
            seen.slow += 1
        except httpx.HTTPError:
            seen.away += 1
        else:
            # Whoever has no such address answers 404, and is there.
            seen.away += status == httpx.codes.SERVICE_UNAVAILABLE

    async def _identity(self, client: httpx.AsyncClient, seen: Watched) -> None:
        found = await (self._of_the_process(client) if self.container is None else _of_the_container(self.container))
        if found is not None:
            seen.starts.add(found)

    async def _of_the_process(self, client: httpx.AsyncClient) -> str | None:
        try:
            status, metrics = await _got(client, f"{self.root}/metrics", _MOST_METRICS)
        except (httpx.HTTPError, TimeoutError):
            return None
        found = _STARTED.search(metrics) if status == httpx.codes.OK else None
        return found[1] if found else None


async def _got(client: httpx.AsyncClient, address: str, most_bytes: int) -> tuple[int, str]:
    """Status, and so much of the body. Raises httpx.HTTPError and TimeoutError."""
    read = bytearray()
    async with asyncio.timeout(HEALTH_LIMIT_S), client.stream("GET", address, timeout=HEALTH_LIMIT_S) as answer:
        async for piece in answer.aiter_bytes():
            read += piece
            if len(read) >= most_bytes:
                break
    return answer.status_code, read[:most_bytes].decode("utf-8", "replace")


async def _of_the_container(name: str) -> str | None:
    output = await _output_of(["docker", "inspect", "--format", "{{.RestartCount}} {{.State.StartedAt}}", name])
    return output.strip() if output else None


async def _killed(process: asyncio.subprocess.Process) -> None:
    """One that waits for a driver may not even end of that: it is left behind."""
    with suppress(ProcessLookupError, TimeoutError):
        process.kill()
        async with asyncio.timeout(1):
            await process.wait()


async def _output_of(command: list[str]) -> str | None:
    """None where there is no such command, it failed, or it had not ended in time."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(HEALTH_LIMIT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:  # also where the run ends meanwhile
        if process.returncode is None:
            await _killed(process)
    return output.decode("utf-8", "replace") if process.returncode == 0 else None
