"""``nvfp4``: what the packed KV cache saves in pages and pools, and what it costs in attention, by format.

Pools are the planner's for the article's model. Attention is computed on the CPU over made keys and values, in plain torch: the
formats' errors are exact, and no time is measured, since none of a CPU says anything of a GPU.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmark.report import Cell, Picture, Report, Table, rounded
from coatcheck.domain.canonical import JsonObject
from coatcheck.gpu.nvfp4 import flash_next
from coatcheck.gpu.nvfp4.planner import GIB, KvFormat

if TYPE_CHECKING:
    import torch

NAME = "nvfp4"
_HEAD_SIZE = 256
_SPREADS = ("normal", "outlier channels", "small")


@dataclass(frozen=True, slots=True)
class Error:
    """Of one format on one kind of numbers, against the same attention over BF16."""

    cosine: float
    largest: float
    values: float
    """Root mean square of the decoded keys' error, over that of the keys."""

    def as_json(self) -> JsonObject:
        return rounded({"cosine": self.cosine, "largest": self.largest, "relative_rms_of_keys": self.values}, 6)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tokens", type=int, default=2_048, help="that a query reads (default %(default)s)")
    parser.add_argument("--queries", type=int, default=32, help="rows of 12 query heads (default %(default)s)")
    parser.add_argument("--memory-gib", type=float, default=5.85, help="for the pool (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    """The pools need nothing; without torch the errors are left out, and the report says so."""
    pools = {kind.value: pool(kind, options.memory_gib) for kind in KvFormat}
    beside = flash_next.bytes_beside(flash_next.observed_ratio())
    ratios = {
        "format": flash_next.planned(KvFormat.BF16).bytes_per_token / flash_next.planned(KvFormat.NVFP4).bytes_per_token,
        "planned_pool": flash_next.planned_ratio(options.memory_gib),
        "observed_by_the_article": flash_next.observed_ratio(),
        "bytes_per_token_beside": beside,
    }
    results: JsonObject = {"pools": dict(pools), "nvfp4_to_bf16": rounded(ratios, 3)}
    tables = [_pools_table(pools, options.memory_gib), _ratios_table(ratios)]
    notes = [
        f"Caches of {beside:,.0f} bytes per token that keep their size would bring the format's ratio down to the observed one."
    ]
    picture = None
    if find_spec("torch") is None:
        notes.append("No error was measured: torch is not installed (make setup-models).")
    else:
        errors = {spread: measure(spread, options.tokens, options.queries, options.seed) for spread in _SPREADS}
        results["errors"] = {
            spread: {kind: error.as_json() for kind, error in by_format.items()} for spread, by_format in errors.items()
        }
        tables.append(_errors_table(errors))
        series = {kind: [errors[spread][kind].values for spread in _SPREADS] for kind in ("fp8", "nvfp4")}
        picture = Picture("Error of decoded keys", "of their root mean square", _SPREADS, series)
    settings: JsonObject = {"tokens": options.tokens, "queries": options.queries, "memory_gib": options.memory_gib}
    return Report(NAME, results, settings, {"seed": options.seed}, {}, tuple(tables), picture, tuple(notes))


def pool(kind: KvFormat, memory_gib: float) -> JsonObject:
    """The article's model with this much memory for its cache."""
    planned = flash_next.planned(kind)
    return {
        "bytes_per_token_and_layer": planned.tokens[0].bytes_per_token,
        "block_tokens": planned.block_tokens[0],
        "page_bytes": planned.page_bytes,
        "padding_bytes": planned.padding_bytes,
        "pool_tokens": planned.pool_tokens(int(memory_gib * GIB), flash_next.MAX_LENGTH),
        "shortest_prefix_hit": planned.shortest_prefix_hit,
    }


def measure(spread: str, tokens: int, queries: int, seed: int) -> dict[str, Error]:
    """Both packed formats against BF16 on the same numbers, one KV head that 12 query heads share."""
    import torch

    from coatcheck.gpu.nvfp4 import codec

    generator = torch.Generator().manual_seed(seed)
    scale = torch.full((_HEAD_SIZE,), 0.02 if spread == "small" else 1.0)
    if spread == "outlier channels":
        scale[:: _HEAD_SIZE // 4] = 12.0
    keys, values = ((torch.randn((tokens, _HEAD_SIZE), generator=generator) * scale).bfloat16() for _ in range(2))
    asked = torch.randn((queries * 12, _HEAD_SIZE), generator=generator).bfloat16().double() / scale.mean()
    decoded = {
        "bf16": (keys.float(), values.float()),
        "fp8": (keys.to(torch.float8_e4m3fn).float(), values.to(torch.float8_e4m3fn).float()),
        "nvfp4": (codec.decode(codec.encode(keys), _HEAD_SIZE), codec.decode(codec.encode(values), _HEAD_SIZE)),
    }
    expected = _attention(asked, *decoded["bf16"])
    found = {}
    for kind, (its_keys, its_values) in decoded.items():
        answer = _attention(asked, its_keys, its_values)
        cosine = torch.cosine_similarity(answer.flatten(), expected.flatten(), dim=0)
        rms = (its_keys - keys.float()).square().mean().sqrt() / keys.float().square().mean().sqrt()
        found[kind] = Error(float(cosine), float((answer - expected).abs().max()), float(rms))
    return found


def _attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    import torch

    weights: torch.Tensor = torch.softmax(queries @ keys.double().T / _HEAD_SIZE**0.5, dim=-1)
    return weights @ values.double()


def _pools_table(pools: dict[str, JsonObject], memory_gib: float) -> Table:
    names = ("bytes_per_token_and_layer", "block_tokens", "page_bytes", "padding_bytes", "pool_tokens", "shortest_prefix_hit")
    rows: list[tuple[Cell, ...]] = [(kind, *(_whole(found[name]) for name in names)) for kind, found in pools.items()]
    columns = ("format", "bytes/token/layer", "block tokens", "page bytes", "padding", "pool tokens", "shortest prefix hit")
    return Table(f"Pages of the article's model, planned; pool of {memory_gib:g} GiB", columns, tuple(rows))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _ratios_table(ratios: dict[str, float]) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = (
        ("keys and values alone", ratios["format"]),
        ("planned pool, with states and whole blocks", ratios["planned_pool"]),
        ("the article's server, as it reported", ratios["observed_by_the_article"]),
    )
    return Table("Tokens in NVFP4 to tokens in BF16", ("", "ratio"), rows)


def _errors_table(errors: dict[str, dict[str, Error]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (f"{spread}, {kind}", f"{error.cosine:.6f}", f"{error.largest:.5f}", f"{error.values:.4f}")
        for spread, by_format in errors.items()
        for kind, error in by_format.items()
    ]
    return Table("Attention against BF16, made numbers", ("", "cosine", "largest error", "relative rms of keys"), tuple(rows))
