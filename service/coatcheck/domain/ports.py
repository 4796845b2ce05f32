"""The ports: what the pipeline and the use cases ask of models, the index and the directory of credentials.

A port that has no implementation is None where it is wired; its absence is recorded and means KEEP, an excerpt, or a recall
on the lexical leg, never an error. Models read ``canonical.scalar_text`` copies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path as FilePath
from typing import Protocol
from uuid import UUID

from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import JsonObject, JsonValue, Path
from coatcheck.domain.messages import Reading, WireFormat
from coatcheck.domain.passages import IndexHit, IndexPoint, RecallFilter, SparseVector, StoredPoint
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.routes import Entailment
from coatcheck.domain.scopes import Scope, TenantScope


class Clock(Protocol):
    def __call__(self) -> datetime:
        """The time now, aware, in UTC."""
        ...


class IdFactory(Protocol):
    def __call__(self) -> UUID:
        """A fresh UUIDv7."""
        ...


class RedactedMessage(Protocol):
    """A message without its secrets, and how many of each kind went."""

    @property
    def message(self) -> JsonObject: ...

    @property
    def counts(self) -> Mapping[str, int]: ...


class RedactedSystem(Protocol):
    """As RedactedMessage, of the bare value of the system field."""

    @property
    def system(self) -> JsonValue: ...

    @property
    def counts(self) -> Mapping[str, int]: ...


class Redacting(Protocol):
    """Takes the secrets out. Raises RedactionFailed, and InvalidRequest for a secret where nothing may be rewritten."""

    @property
    def revision(self) -> str:
        """The revision of the rules."""
        ...

    def redact_message(self, wire: WireFormat, message: JsonObject, keys: PlaceholderKeys, *, at: Path) -> RedactedMessage: ...

    def redact_messages(
        self,
        wire: WireFormat,
        messages: Sequence[JsonObject],
        keys: PlaceholderKeys,
        *,
        at: Path,
        readings: Sequence[Reading] | None = None,
        first: int = 0,
    ) -> Sequence[RedactedMessage]:
        """As ``redact_message``, of each message of the list at ``at``, from its ``first`` on; also what lies over two of them.

        ``readings`` are the wire's, where they are known.
        """
        ...

    def redact_system(self, wire: WireFormat, system: JsonValue, keys: PlaceholderKeys, *, at: Path) -> RedactedSystem: ...


class TokenCounter(Protocol):
    """Counts tokens exactly, for one named tokeniser. Raises StageUnavailable."""

    name: str

    def count(self, texts: Sequence[str]) -> int:
        """The tokens of all the texts together."""
        ...


class Router(Protocol):
    """Scores texts against labels, in one batch. Raises StageUnavailable, Overloaded; answers within the budget."""

    revision: str

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        """For each text the score in [0, 1] of every label."""
        ...


class Compressor(Protocol):
    """Proposes a shorter form of each text. Raises StageUnavailable, Overloaded; answers within the budget."""

    revision: str

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        """``rate`` is the share of the tokens to stay, in (0, 1)."""
        ...


class EntailmentGate(Protocol):
    """Judges (premise, hypothesis) pairs. Raises StageUnavailable, Overloaded; answers within the budget."""

    revision: str

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]: ...


class Summariser(Protocol):
    """Writes an overview of a window's texts, at most ``max_chars`` code points. Raises StageUnavailable, Overloaded."""

    revision: str

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> str: ...


class Embedder(Protocol):
    """Texts to unit vectors. ``input_tokens`` is the longest input it reads whole; the rest would be cut off."""

    revision: str
    weights: FilePath | None
    """The file that holds them; None where there are none."""
    dimensions: int
    input_tokens: int
    threads: int
    """How many calls it works on at the same time."""

    def token_offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """For each text its tokens' spans in code points, [start, end), special tokens left out."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...


class Reranker(Protocol):
    """Scores passages against a query: logits, higher is better. Raises StageUnavailable."""

    revision: str
    weights: FilePath | None
    english_only: bool
    """Whether it was trained on English alone."""

    def score(self, query: str, passages: Sequence[str]) -> list[float]: ...


class RerankWorker(Protocol):
    """The reranker behind its worker: answers within ``limit_s``. Raises StageUnavailable, Overloaded."""

    revision: str
    english_only: bool

    async def score(self, scope: TenantScope, query: str, passages: Sequence[str], limit_s: float) -> list[float]: ...

    async def warm(self) -> None:
        """Loads the model. Raises nothing."""


class EmbeddingLanes(Protocol):
    """The embedder behind a worker that lets queries pass ahead of ingest, and tenants take turns.

    Raises StageUnavailable, Overloaded.
    """

    revision: str
    dimensions: int
    input_tokens: int

    async def token_offsets(self, scope: TenantScope, texts: Sequence[str]) -> list[list[tuple[int, int]]]: ...

    async def embed_passages(self, scope: TenantScope, texts: Sequence[str]) -> list[list[float]]: ...

    async def embed_query(self, scope: TenantScope, text: str) -> list[float]: ...


class VectorIndex(Protocol):
    """The projection. Every method raises IndexUnavailable; a write has reached the index when it returns."""

    async def upsert(self, scope: TenantScope, points: Sequence[IndexPoint]) -> None:
        """Writes points in place. Refuses a point of another tenant."""
        ...

    async def search_dense(
        self, scope: Scope, generation: int, vector: Sequence[float], narrow: RecallFilter, limit: int
    ) -> list[IndexHit]: ...

    async def search_lexical(
        self, scope: Scope, generation: int, vector: SparseVector, narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        """IDF is taken over what the scope may read, and nothing else."""
        ...

    async def delete_points(self, scope: TenantScope, point_ids: Sequence[UUID]) -> None: ...

    async def delete_session(self, scope: TenantScope, session_id: UUID) -> None: ...

    async def delete_tenant(self, scope: TenantScope) -> None:
        """Every point of the tenant."""
        ...

    async def set_acl(self, scope: TenantScope, session_id: UUID, acl: Sequence[str]) -> None: ...

    async def retrieve(self, scope: TenantScope, point_ids: Sequence[UUID]) -> list[StoredPoint]:
        """The points that exist, in no order, whatever tenant their payload names: the caller compares."""
        ...

    def scroll(self, after: UUID | None = None, page_size: int = 1_000) -> AsyncIterator[list[StoredPoint]]:
        """Every point of every tenant, in pages: for the operators' scan for orphans alone."""
        ...

    def scroll_ids(
        self, scope: TenantScope, page_size: int = 1_000, *, session_id: UUID | None = None
    ) -> AsyncIterator[list[UUID]]:
        """The ids of the tenant's points, or of one of its sessions', whatever their generation, in pages."""
        ...

    async def count(self, scope: TenantScope, session_id: UUID, generation: int) -> int: ...

    async def delete_generation(self, generation: int) -> None: ...

    async def flush(self) -> None: ...

    async def check(self) -> None:
        """Returns when the index answers."""
        ...

    async def close(self) -> None: ...
