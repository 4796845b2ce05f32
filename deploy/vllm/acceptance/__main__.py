"""``python -m deploy.vllm.acceptance --endpoint http://127.0.0.1:8000/v1``: three rounds of 16 overlapping requests.

Exits with 0 where every answer counted and the server stayed the same one, with 1 where not, with 2 where it could not begin,
or the result not be written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from pathlib import Path

import httpx

from deploy.vllm.acceptance.rounds import Load, Round, first_model, run_round
from deploy.vllm.acceptance.verdict import as_lines, as_values, findings
from deploy.vllm.acceptance.watching import MEMORY_COMMAND, Watch, Watched


def main(arguments: list[str] | None = None) -> int:
    """Runs it and says what it found."""
    given = _parser().parse_args(arguments)
    try:
        load, rounds, seen = asyncio.run(_run(given))
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, LookupError) as error:
        print(f"the run could not begin: {type(error).__name__} at {given.endpoint}", file=sys.stderr)
        return 2
    for line in as_lines(load, rounds, seen):
        print(line)
    if given.json is not None:
        try:
            given.json.write_text(json.dumps(as_values(load, rounds, seen), indent=2) + "\n", "utf-8")
        except OSError as error:
            print(f"the result could not be written: {error.strerror}: {given.json}", file=sys.stderr)
            return 2
    return 1 if findings(load, rounds, seen) else 0


async def _run(given: argparse.Namespace) -> tuple[Load, list[Round], Watched]:
    endpoint = given.endpoint.rstrip("/")
    headers = {"Authorization": f"Bearer {given.api_key_file.read_text('utf-8').strip()}"} if given.api_key_file else {}
    watch = Watch(endpoint.removesuffix("/v1"), given.container, given.memory_command, given.every)
    seen, rounds = Watched(), list[Round]()
    # A pool with room for the watch's own requests beside a whole round.
    limits = httpx.Limits(max_connections=given.at_once + 4, max_keepalive_connections=given.at_once + 4)
    async with httpx.AsyncClient(headers=headers, limits=limits, trust_env=False) as client:
        model = given.model or await first_model(client, endpoint)
        load = Load(model, given.rounds, given.at_once, given.max_tokens, given.temperature, given.limit)
        await watch.look(client, seen)
        async with watch.running(client, seen):
            for number in range(1, load.rounds + 1):
                rounds.append(await run_round(client, endpoint, load, number))
        await watch.look(client, seen)
    return load, rounds, seen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.vllm.acceptance", description=__doc__)
    parser.add_argument("--endpoint", required=True, help="an OpenAI-compatible address, as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", help="the first that the endpoint names, without it")
    parser.add_argument("--rounds", type=_count, default=3)
    parser.add_argument("--at-once", type=_count, default=16)
    parser.add_argument("--max-tokens", type=_count, default=700)
    parser.add_argument("--temperature", type=_number, default=0.8)
    parser.add_argument("--limit", type=_seconds, default=180.0, help="seconds for one answer")
    parser.add_argument("--container", help="whose restarts docker counts; without it /metrics tells one start from another")
    parser.add_argument("--memory-command", default=MEMORY_COMMAND, help="prints MiB used and free, a line for each device")
    parser.add_argument("--every", type=_seconds, default=2.0, help="seconds between two looks at memory and server")
    parser.add_argument("--api-key-file", type=Path)
    parser.add_argument("--json", type=Path, help="where the whole result is written")
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError("a number")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("above 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
