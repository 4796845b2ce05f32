"""Where a model's files lie (in a local folder, or from a hub's repository at one commit), and which ones they are, by hash.

Nothing here asks a hub but ``pull``: a start and a load read what is on this machine.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from coatcheck.compaction import strict_yaml
from coatcheck.domain.errors import RefusedToStart, StageUnavailable, StageUnfit
from coatcheck.models.packaged import file_sha256
from coatcheck.ops import ordinary_files

WEIGHTS = ".safetensors"
"""The one format of weights that is read: it holds numbers and nothing that could run."""
_READ = (WEIGHTS, ".json", ".txt", ".model")
_FILES = [f"*{suffix}" for suffix in _READ] + ["README.md"]
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_CARD = re.compile(rb"---\r?\n(.*?)\n---\r?\n", re.DOTALL)
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Named:
    """A model as a setting names it. ``commit`` is empty for a folder."""

    name: str
    folder: Path | None = None
    commit: str = ""


class Checkpoint:
    """The files of one model in one folder. What is asked of it reads them, once."""

    def __init__(self, named: Named, folder: Path) -> None:
        self.name = named.name
        self.folder = folder
        self.commit = named.commit

    @cached_property
    def revision(self) -> str:
        """The name, and the beginning of a hash over every file that a load reads: other weights or labels are another model."""
        found = hashlib.sha256()
        for path in self._files(_READ):
            found.update(f"{path.relative_to(self.folder)}\0{self._sha256_of(path)}\n".encode())
        return f"{self.name}@{found.hexdigest()[:12]}"

    @cached_property
    def sha256(self) -> str:
        """Of the weights; of the list of their names and hashes where they are in several files."""
        hashes = {str(path.relative_to(self.folder)): self._sha256_of(path) for path in self.weights}
        if len(hashes) == 1:
            return next(iter(hashes.values()))
        return hashlib.sha256("".join(f"{name}\0{found}\n" for name, found in hashes.items()).encode()).hexdigest()

    @property
    def weights(self) -> list[Path]:
        return self._files((WEIGHTS,))

    @property
    def licence(self) -> str:
        """As the model's card has it; ``unknown`` where there is none."""
        found = self._card().get("license")
        return found if isinstance(found, str) else "unknown"

    @property
    def languages(self) -> tuple[str, ...]:
        """As the model's card has them; none where it does not say."""
        found = self._card().get("language")
        return (found,) if isinstance(found, str) else tuple(map(str, found)) if isinstance(found, list) else ()

    def _card(self) -> Mapping[str, object]:
        """The head of the README, which is what a hub reads of it."""
        try:
            with ordinary_files.opened(self.folder / "README.md") as file:
                found = _CARD.match(file.read(_HEAD_BYTES))
            card = strict_yaml.load(found[1]) if found else None
        except (OSError, strict_yaml.NotYaml):
            return {}
        return card if isinstance(card, dict) else {}

    def _sha256_of(self, path: Path) -> str:
        try:
            return file_sha256(path)
        except OSError as error:
            raise StageUnavailable(f"The file {path.name} of the model {self.name} cannot be read ({error.strerror}).") from error

    def _files(self, suffixes: Iterable[str]) -> list[Path]:
        """Sorted by name. Raises StageUnavailable where the folder cannot be read."""
        try:
            return sorted(path for path in self.folder.rglob("*") if path.suffix in tuple(suffixes) and path.is_file())
        except OSError as error:
            raise StageUnavailable(f"The folder of the model {self.name} cannot be read.") from error


def parse(setting: str, value: str) -> Named:
    """What a setting names: a folder (absolute, or beginning with ``.`` or ``~``), or ``NAME@COMMIT`` of a hub.

    Raises RefusedToStart: a name without its commit may be another model tomorrow, and a relative name may be either.
    """
    if is_folder(value):
        folder = Path(value).expanduser().resolve()
        return Named(folder.name, folder)
    name, at, commit = value.partition("@")
    if not _REPOSITORY.fullmatch(name):
        raise RefusedToStart(f"{setting} is neither a folder (an absolute path, or one from ./ or ~) nor NAME@COMMIT of a hub.")
    if not _COMMIT.fullmatch(commit):
        said = "a revision that is no commit" if at else "no revision"
        raise RefusedToStart(
            f"{setting} names a hub's model with {said}: write NAME@COMMIT with the commit's 40 digits, or a folder."
        )
    return Named(name, None, commit)


def is_folder(value: str) -> bool:
    return value.startswith(("/", ".", "~"))


def is_pinned(value: str) -> bool:
    """Whether the name is one of ours to find: a folder, or a hub's name with its commit."""
    return is_folder(value) or "@" in value


def locate(named: Named, cache_dir: Path) -> Checkpoint:
    """The model's files on this machine. Raises StageUnavailable where they are not."""
    if named.folder is not None:
        folder, missing = named.folder, f"There is no model in the folder {named.folder}"
    else:
        folder, missing = _snapshot(named, cache_dir), f"The model {named.name} is not on this machine (coatcheck models pull)"
    checkpoint = Checkpoint(named, folder)
    require_ordinary(folder)
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise StageUnavailable(f"{missing}.")
    if not checkpoint.weights:
        raise StageUnavailable(f"The model {named.name} has no weights in the safetensors format; no other one is read.")
    return checkpoint


def require_ordinary(folder: Path) -> None:
    """Raises StageUnfit for what a library would wait for, or leave out without a word: a pipe, a device or a socket in the
    folder of a model, or a folder under a file's name."""
    for path in folder.rglob("*"):
        try:
            mode = path.stat().st_mode
        except OSError:  # a link to nothing: what is missing says who needs it
            continue
        if not (stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and path.suffix not in _READ)):
            raise StageUnfit(f"{path.relative_to(folder)} in the model's folder {folder} is no ordinary file.")


def pull(named: Named, cache_dir: Path) -> Checkpoint:
    """As ``locate``, from the hub where they are not here. Raises StageUnavailable."""
    if named.folder is None:
        from huggingface_hub import snapshot_download

        try:
            snapshot_download(named.name, revision=named.commit, cache_dir=cache_dir, allow_patterns=_FILES)
        except Exception as error:  # the library's and its transport's kinds are many
            raise StageUnavailable(f"The model {named.name} could not be had from the hub ({type(error).__name__}).") from error
    return locate(named, cache_dir)


def _snapshot(named: Named, cache_dir: Path) -> Path:
    """Where the hub's library keeps this commit's files."""
    return cache_dir / f"models--{named.name.replace('/', '--')}" / "snapshots" / named.commit
