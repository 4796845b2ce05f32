"""The policy as a document: the shipped one, and an operator's file over it, refused at the start where it does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from coatcheck.compaction import protection, strict_yaml
from coatcheck.compaction.policy import Bar, DropConditions, Label, Policy
from coatcheck.compaction.strict_yaml import NotYaml
from coatcheck.domain.canonical import JsonValue, sha256_hex, to_sorted_bytes
from coatcheck.domain.errors import RefusedToStart
from coatcheck.domain.routes import Route
from coatcheck.ops import ordinary_files

_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_LONGEST = 100_000
_MOST_LABELS = 32


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _LabelIn(_Model):
    route: Literal["keep", "compress", "drop"]
    text: Annotated[str, Field(min_length=3, max_length=300)]


class _BarIn(_Model):
    score: _Share
    margin: _Share


class _DropIn(_BarIn):
    enabled: bool
    max_chars: Annotated[int, Field(ge=1)]


class _RoutingIn(_Model):
    compress: _BarIn
    drop: _DropIn

    @model_validator(mode="after")
    def _leaving_out_takes_more(self) -> _RoutingIn:
        if self.drop.score < self.compress.score or self.drop.margin < self.compress.margin:
            raise ValueError("leaving text out must take at least the score and the margin of shortening it")
        return self


class _ReductionIn(_Model):
    rate: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class _GatesIn(_Model):
    entailment_margin: _Share


class _Document(_Model):
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")]
    labels: Annotated[dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")], _LabelIn], Field(max_length=_MOST_LABELS)]
    routing: _RoutingIn
    protections: list[str]
    reduction: _ReductionIn
    gates: _GatesIn

    @field_validator("labels")
    @classmethod
    def _every_route_has_a_label(cls, labels: dict[str, _LabelIn]) -> dict[str, _LabelIn]:
        if missing := sorted({route.value for route in Route} - {label.route for label in labels.values()}):
            raise ValueError(f"no label speaks for {', '.join(missing)}")
        if len({label.text for label in labels.values()}) < len(labels):
            raise ValueError("two labels have one text")
        return labels

    @field_validator("protections")
    @classmethod
    def _protections_exist(cls, names: list[str]) -> list[str]:
        if unknown := sorted(set(names) - protection.EVIDENCE):
            raise ValueError(f"no evidence is called {', '.join(name[:40] for name in unknown[:5])}")
        return sorted(set(names))


@cache
def shipped() -> Policy:
    """The policy that comes with this release."""
    return _policy(_Document.model_validate(_shipped()))


def of(path: Path | None) -> Policy:
    """The operator's policy where there is one, else the shipped one. Raises RefusedToStart."""
    return shipped() if path is None else read(path)


def read(path: Path) -> Policy:
    """The operator's policy: their file over the shipped one. Raises RefusedToStart, naming what is wrong and where."""
    try:
        content = ordinary_files.read(path, _LONGEST)
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror})") from error
    try:
        written = strict_yaml.load(content)
    except NotYaml as error:
        raise _refused(path, str(error)) from error
    if not isinstance(written, dict):
        raise _refused(path, "holds no policy")
    if "version" not in written:
        raise _refused(path, "has no version of its own")
    try:
        document = _Document.model_validate(_over(_shipped(), written))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))[:80]}: {e['msg']}" for e in error.errors()[:5])
        raise _refused(path, f"does not fit: {problems}") from error
    return _policy(document)


def _shipped() -> dict[str, object]:
    content = files("coatcheck.compaction").joinpath("policy.yaml").read_bytes()
    return cast(dict[str, object], strict_yaml.load(content))


def _over(below: Mapping[str, object], above: Mapping[object, object]) -> dict[object, object]:
    """The fields of ``above``, and within mappings those of ``below`` that it does not name. Labels stand as a whole."""
    merged: dict[object, object] = dict(below.items())
    for name, given in above.items():
        standing = merged.get(name)
        nested = isinstance(given, dict) and isinstance(standing, dict) and name != "labels"
        merged[name] = _over(cast(dict[str, object], standing), cast(dict[object, object], given)) if nested else given
    return merged


def _policy(document: _Document) -> Policy:
    drop = document.routing.drop
    return Policy(
        version=document.version,
        digest=sha256_hex(to_sorted_bytes(cast(JsonValue, document.model_dump(mode="json")))),
        labels={name: Label(Route(label.route), label.text) for name, label in document.labels.items()},
        compress=Bar(document.routing.compress.score, document.routing.compress.margin),
        drop=DropConditions(drop.enabled, Bar(drop.score, drop.margin), drop.max_chars),
        protections=frozenset(document.protections),
        reduction_rate=document.reduction.rate,
        entailment_margin=document.gates.entailment_margin,
    )


def _refused(path: Path, what: str) -> RefusedToStart:
    return RefusedToStart(f"COATCHECK_POLICY: {path} {what}.")
