"""Lets vLLM read a configuration with sparse attention and its plugins loaded, and prints the types of its layers."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.vllm.asked.tiny_models import HYBRID, SPARSE_TYPES


def main() -> None:
    import vllm.plugins
    from vllm.transformers_utils.config import get_config

    vllm.plugins.load_general_plugins()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps({**HYBRID, "vocab_size": 512, "layer_types": SPARSE_TYPES}), "utf-8")
        print(json.dumps(list(get_config(folder, trust_remote_code=False).layer_types)))


if __name__ == "__main__":
    main()
