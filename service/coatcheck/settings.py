"""Configuration: environment variables with the prefix COATCHECK_, and one file of them, read once into one frozen value.

The file is the one that COATCHECK_ENV_FILE names, else coatcheck.env in the data directory. What lies in the working directory is
not read: it may be anybody's (docs/decisions/016).

An empty value is none: ``docker run -e NAME=`` and a compose file whose variable is not set make them, and no setting has a meaning
for one. Then what the file says counts, or the default.

Unknown names with the prefix refuse to start; reserved names (COATCHECK_TEST_*, *_SERVICE_*, *_PORT*, the client's
COATCHECK_URL and COATCHECK_API_KEY) are ignored.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from coatcheck.domain.errors import RefusedToStart

PREFIX = "COATCHECK_"
_RESERVED = re.compile(r"^COATCHECK_(?:TEST_.*|.*_SERVICE_.*|.*_PORT(?:_.*)?|PORT(?:_.*)?|URL|API_KEY|ENV_FILE)$")
ENV_FILE = PREFIX + "ENV_FILE"
DATA_DIR = PREFIX + "DATA_DIR"
DATA_DIR_FILE = "coatcheck.env"
WORKING_DIR_FILE = Path(".env")

Seconds = Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)]
"""Three years at most: what is added to a time stays one."""
Rate = Annotated[float, Field(ge=1e-6, le=1e12, allow_inf_nan=False)]


def default_data_dir() -> Path:
    """The user's data directory; root's is the machine's, since the embedded server opens the folders above it to others."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/coatcheck")
    return Path(platformdirs.user_data_dir("coatcheck"))


class Settings(BaseSettings):
    """Every setting of the service. Durations in seconds, sizes in bytes, lengths in code points."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    data_dir: Path = Field(default_factory=default_data_dir)
    """Embedded data, run.json, the local key and, when embedded, the erasure journal."""
    embedded: bool = False
    """PostgreSQL and the index inside the data directory. Chosen, never fallen back to."""
    database_url: SecretStr | None = None
    """The serving login: neither owner nor superuser nor BYPASSRLS."""
    migration_database_url: SecretStr | None = None
    """The owner's login, for ``coatcheck migrate`` alone."""
    qdrant_url: str | None = None
    qdrant_api_key: SecretStr | None = None
    qdrant_collection: str = "coatcheck"
    root_key: SecretStr | None = None
    """32 bytes in hex or base64. Embedded mode makes its own, in a file of mode 0600."""
    root_key_file: Path | None = None
    root_key_previous: SecretStr | None = None
    """Earlier root keys, separated by commas, after a rotation: what they made is verified with them."""
    root_key_previous_file: Path | None = None
    erasure_journal: Path | None = None
    """Required with a database URL: a directory outside the database, with one file a process."""
    redaction_rules: Path | None = None
    """Rules of the operator's own, beside ours: a file in kingfisher's YAML. Another file is another rule revision."""
    policy: Path | None = None
    """A policy of the operator's own over the shipped one (``compaction/policy.yaml``): YAML with a version of its own."""
    public_url: str | None = None
    outbound_allow_private: bool = False
    """Fetch issuers' keys from private addresses too. Link-local ones are never fetched from."""
    outbound_allow_loopback: bool = False
    """Fetch from this machine too, then by http as well: for a development issuer."""
    outbound_allow_private_http: bool = False
    """The summariser's endpoint by http too where private addresses are open: most model servers speak no other."""
    allow_root_home: bool = False
    """Embedded data under root's home: the embedded server then opens every parent folder to other users."""

    min_free_bytes: int = Field(default=256 * 1024 * 1024, ge=0)
    """What has to stay free where this process writes: with less, nothing is taken in. 0 takes in until a write fails."""

    host: str = "127.0.0.1"
    listen_port: int = Field(default=8717, ge=0, le=65_535)
    max_body_bytes: int = Field(default=32 * 1024 * 1024, ge=1_024)
    max_message_bytes: int = Field(default=5 * 1024 * 1024, ge=1_024)
    deadline_s: Seconds = 30
    max_deadline_s: Seconds = 600
    max_in_flight: int = Field(default=64, ge=1)
    max_working: int = Field(default_factory=lambda: max(2, os.cpu_count() or 1), ge=1)
    """Pieces of work that need a core at the same time (plans, recalls, projections); more wait, and tenants take turns."""
    tenant_requests_per_minute: Rate | None = None
    """For each tenant that has no limits of its own; so are the next four. None is no limit."""
    tenant_bytes_per_minute: Rate | None = None
    tenant_embedding_seconds_per_minute: Rate | None = None
    tenant_max_segments: int | None = Field(default=None, ge=0)
    tenant_max_bytes: int | None = Field(default=None, ge=0)
    drain_grace_s: Seconds = 20
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    pool_size: int = Field(default=8, ge=1)
    statement_timeout_s: Seconds = 30
    lease_s: Seconds = 30
    same_request_wait_s: Seconds = 10

    embedder: str = "auto"
    """``auto`` (bge-small from packaged weights, else from the hub, else none), ``none``, ``hashing``, or a fastembed name."""
    embed_batch: int = Field(default=8, ge=1)
    reranker: str = "auto"
    """As the embedder's; there is no ``hashing`` one."""
    rerank_limit_s: Seconds = 2.0
    """A recall waits no longer for its reranker: its hits then keep their fused order, and it says so."""
    router: str = "none"
    """Which text may be shortened: ``none``, a folder (absolute, or from ``./`` or ``~``), or a hub's ``NAME@COMMIT``, which
    ``coatcheck models pull`` fetches and no start does. So are the next ones."""
    router_buckets: str | None = Field(default=None, pattern=r"^[1-9]\d{0,4}(,[1-9]\d{0,4}){0,15}$")
    """Lengths in tokens, by commas, for which a quantised router on a GPU captures graphs (``64,128,192,256`` without one). What is
    longer runs without a graph; none may be above what the model reads."""
    compressor: str = "none"
    """Proposes shorter texts."""
    entailment: str = "none"
    """Judges whether a shorter text still follows from the whole one."""
    entailment_labels: str | None = None
    """The model's outputs in their order, by commas, where its checkpoint does not name them."""
    summariser: str = "none"
    """Writes overviews. Also the base URL of an OpenAI-compatible endpoint (mostly ending in ``/v1``)."""
    summariser_model: str | None = None
    """Which of the endpoint's models is asked."""
    summariser_api_key: SecretStr | None = None
    fusion_dense_weight: float = Field(default=1.0, ge=0)
    fusion_lexical_weight: float = Field(default=2.0, ge=0)
    fusion_rrf_k: int = Field(default=20, ge=1)
    recall_over_fetch: int = Field(default=4, ge=1)

    response_cache: bool = False
    """Whether answers are kept for reuse (``/v1/cache``). Off: a look-up is bypassed, and nothing is stored."""
    response_cache_ttl_s: Seconds = 3_600
    """The longest life of an entry; its caller may ask for a shorter one. Age is no permission: that is asked for each time."""
    response_cache_max_answer_bytes: int = Field(default=256 * 1024, ge=1)
    response_cache_max_entries: int = Field(default=1_000, ge=1)
    """For each sharing scope (a principal, a team, a tenant); the oldest go."""
    response_cache_timeout_s: Seconds = 0.5
    """A look-up or a store that takes longer is bypassed, and the answer generated as if there were no cache."""
    response_cache_semantic: bool = False
    """Whether a request may ask for comparison by meaning."""
    response_cache_similarity: float = Field(default=0.9, ge=0, le=1)

    reconcile_interval_s: Seconds = 2
    outbox_max_attempts: int = Field(default=8, ge=1)
    index_flush_interval_s: Seconds = 3
    housekeeping_interval_s: Seconds = 60
    """How often retention is applied."""
    stage_limit_s: Seconds = 120
    watchdog_grace_s: Seconds = 10

    @field_validator("router_buckets")
    @classmethod
    def _each_once(cls, lengths: str | None) -> str | None:
        if lengths is not None and len(set(lengths.split(","))) < lengths.count(",") + 1:
            raise ValueError("a length is named twice")
        return lengths

    @model_validator(mode="after")
    def _one_kind_of_storage(self) -> Settings:
        if self.embedded and (self.database_url or self.qdrant_url):
            raise ValueError("embedded mode takes no COATCHECK_DATABASE_URL and no COATCHECK_QDRANT_URL: choose one")
        if self.database_url and not self.erasure_journal:
            raise ValueError("a database URL needs COATCHECK_ERASURE_JOURNAL, a file outside the database")
        if self.database_url and not (self.root_key or self.root_key_file):
            raise ValueError("a database URL needs COATCHECK_ROOT_KEY or COATCHECK_ROOT_KEY_FILE")
        return self


def load(environment: Mapping[str, str] | None = None, env_file: Path | None = None, /, **overrides: object) -> Settings:
    """Reads the settings. Raises RefusedToStart with the names, never the values, of what is wrong."""
    names = os.environ if environment is None else environment  # noqa: TID251
    file = _env_file(names, env_file, overrides.get("data_dir"))
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    given = {*names, *(_lines_of(file) if file is not None else ())}
    unknown = sorted(n for n in given if n.startswith(PREFIX) and n not in known and not _RESERVED.match(n))
    if unknown:
        raise RefusedToStart(f"Unknown settings: {', '.join(name + _meant(name, known) for name in unknown)}.")
    try:
        return Settings(_env_file=file, **overrides)  # type: ignore[arg-type, call-arg]
    except ValidationError as error:
        problems = "; ".join(f"{PREFIX}{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors())
        raise RefusedToStart(f"Settings do not fit: {problems}.") from error


def unread_file() -> Path | None:
    """The file of the working directory that sets something of ours, and is not read; None where there is none.

    None too where COATCHECK_ENV_FILE names a file: whoever does that knows which one is read.
    """
    if os.environ.get(ENV_FILE):  # noqa: TID251
        return None
    try:
        if not WORKING_DIR_FILE.is_file():  # a pipe, of which some tools make one, would keep every command waiting
            return None
        return WORKING_DIR_FILE.resolve() if any(name.startswith(PREFIX) for name in _lines_of(WORKING_DIR_FILE)) else None
    except (RefusedToStart, OSError):
        return None


def _env_file(names: Mapping[str, str], named: Path | None, data_dir: object) -> Path | None:
    """The file to read besides the environment: the one that is named, which has to be there, else the data directory's own."""
    if named is not None or names.get(ENV_FILE):
        file = named or Path(names[ENV_FILE])
        if not file.is_file():
            raise RefusedToStart(f"The settings file {file} is not there.")
        return _trusted(file)
    folder = Path(str(data_dir or names.get(DATA_DIR) or default_data_dir())).expanduser()
    file = folder / DATA_DIR_FILE
    try:
        if not file.is_file():
            return None
    except PermissionError:  # nor is the directory ours: the start says so
        return None
    if _lines_of(file).get(DATA_DIR):
        raise RefusedToStart(f"{file} lies in the data directory and cannot name another one: {DATA_DIR} has no place in it.")
    return _trusted(file)


def _trusted(file: Path) -> Path:
    """Raises RefusedToStart for a file that somebody else can write: it says where the data goes."""
    found = file.stat()
    if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0):
        raise RefusedToStart(f"The settings file {file} belongs to another user.")
    if stat.S_IMODE(found.st_mode) & 0o022:
        raise RefusedToStart(f"Others can write to the settings file {file}: chmod go-w {file}")
    return file


def _lines_of(file: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values

    try:
        return {name.upper(): value for name, value in dotenv_values(file).items()}
    except (OSError, ValueError) as error:
        raise RefusedToStart(f"The settings file {file} cannot be read.") from error


def _meant(name: str, known: Iterable[str]) -> str:
    own = name.removeprefix(PREFIX)  # what all of them share would make any two alike
    alike = difflib.get_close_matches(own, [one.removeprefix(PREFIX) for one in known], n=1, cutoff=0.8)
    return f" ({PREFIX}{alike[0]}?)" if alike else ""


def cache_dir() -> Path:
    """What can be made again (compiled rules): the user's cache directory, never the data directory."""
    return Path(platformdirs.user_cache_dir("coatcheck"))


def armed_crash_points() -> str | None:
    """The crash points that a fault test has set for this process (``ops.faults``); None outside of tests."""
    return os.environ.get("COATCHECK_TEST_CRASH_POINT")  # noqa: TID251


def memory_index_is_enough() -> bool:
    """Whether a test of several processes looks at rows alone, so that ``:memory:`` may stand for the index's server."""
    return bool(os.environ.get("COATCHECK_TEST_MEMORY_INDEX"))  # noqa: TID251
