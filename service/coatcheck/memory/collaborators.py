"""What the use cases work with. Wired once, in ``coatcheck.app``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.ports import Clock, EmbeddingLanes, IdFactory, RerankWorker, VectorIndex
from coatcheck.identity.keyring import Keyring
from coatcheck.memory.journal import ErasureJournal
from coatcheck.memory.limits import Limiter
from coatcheck.memory.planning import Planning
from coatcheck.ops.disk import Disk
from coatcheck.ops.metrics import Metrics
from coatcheck.ops.progress import ProgressBoard
from coatcheck.ops.slots import FairSlots
from coatcheck.outbound.client import Outbound
from coatcheck.settings import Settings
from coatcheck.store.database import Database


@dataclass(frozen=True, slots=True)
class Generation:
    """The index's generation that this process writes and reads; ``building`` until every segment is in it."""

    number: int
    embedder_revision: str
    analyser_revision: str

    @property
    def revisions(self) -> dict[str, str]:
        """What a run records beside the revisions of its plan."""
        return {"embedder": self.embedder_revision, "analyser": self.analyser_revision}


@dataclass(slots=True)
class ServiceState:
    """What changes while the service runs, and no use case may keep to itself."""

    building: bool = False
    """True while a new generation is being filled: recall says so."""
    draining: bool = False
    erased: bool = False
    """True from an erasure until the engine's files were rewritten without it."""


@dataclass(frozen=True, slots=True)
class Collaborators:
    """The parts every use case may need."""

    settings: Settings
    database: Database
    index: VectorIndex
    lanes: EmbeddingLanes | None
    reranker: RerankWorker | None
    absent: Mapping[str, str]
    """Why a stage that the settings ask for has no model."""
    planning: Planning
    redactor: Redactor
    keyring: Keyring
    journal: ErasureJournal
    clock: Clock
    new_id: IdFactory
    metrics: Metrics
    limiter: Limiter
    working: FairSlots
    """Entered for what needs a core, for as long as it does, and never twice at once by the same piece of work."""
    disk: Disk
    progress: ProgressBoard
    generation: Generation
    owner: str
    """Who holds the leases of this process; another start of the same process is another owner."""
    outbound: Outbound
    state: ServiceState = field(default_factory=ServiceState)
