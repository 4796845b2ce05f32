"""Where the root keys come from: settings, files, or the data directory's own; and a new one for the latter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import RefusedToStart
from coatcheck.identity import root_key
from coatcheck.settings import Settings


@dataclass(frozen=True, slots=True)
class RootKeys:
    """The one to use, and earlier ones that verify what they made."""

    current: bytes
    previous: Sequence[bytes] = ()


def root_keys(settings: Settings, directory: DataDirectory) -> RootKeys:
    """Raises RefusedToStart."""
    earlier = _earlier(settings)
    if settings.root_key is not None:
        return RootKeys(root_key.parse(settings.root_key.get_secret_value()), earlier)
    if settings.root_key_file is not None:
        return RootKeys(root_key.load(settings.root_key_file), earlier)
    if not settings.embedded:
        raise RefusedToStart("Set COATCHECK_ROOT_KEY or COATCHECK_ROOT_KEY_FILE.")
    current = root_key.load_or_create(directory.root_key_file)
    return RootKeys(current, [*earlier, *(root_key.load(path) for path in _retired(directory.root_key_file))])


def rotate_file(directory: DataDirectory) -> None:
    """A new root key in the data directory; the one before it stays beside it. A crash in between changes nothing that counts."""
    root_key.replace(directory.root_key_file)


def keeps_its_own(settings: Settings) -> bool:
    """Whether the root key is the data directory's, and not the operator's."""
    return settings.embedded and settings.root_key is None and settings.root_key_file is None


def _earlier(settings: Settings) -> list[bytes]:
    given = [] if settings.root_key_previous is None else settings.root_key_previous.get_secret_value().split(",")
    keys = [root_key.parse(text) for text in given if text.strip()]
    return keys if settings.root_key_previous_file is None else [*keys, root_key.load(settings.root_key_previous_file)]


def _retired(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}{root_key.RETIRED}*"))
