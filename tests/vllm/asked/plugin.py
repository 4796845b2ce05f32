"""Lets vLLM load its plugins, twice, and prints what that armed and imported."""

from __future__ import annotations

import importlib.metadata
import json
import sys


def main() -> None:
    import vllm.plugins

    from coatcheck.gpu.vllm.asking import as_values, asked
    from coatcheck.gpu.vllm.plugin import Armed

    def armed() -> int:
        return sum(isinstance(finder, Armed) for finder in sys.meta_path)

    entry_points = [entry.name for entry in importlib.metadata.entry_points(group="vllm.general_plugins")]
    vllm.plugins.load_general_plugins()
    first = armed()
    vllm.plugins.plugins_loaded = False
    vllm.plugins.load_general_plugins()
    service = {
        "sqlalchemy",
        "psycopg",
        "alembic",
        "fastembed",
        "structlog",
        "coatcheck_client",
        "coatcheck.settings",
        "coatcheck.api",
    }
    ours = ("coatcheck", "coatcheck-client", "sqlalchemy", "psycopg", "fastembed", "structlog")
    print(
        json.dumps(
            {
                "entry_points": sorted(name for name in entry_points if name.startswith("coatcheck")),
                "armed_after_vllm_loaded_its_plugins": first,
                "armed_after_loading_again": armed(),
                "of_the_service": sorted(service & set(sys.modules)),
                "installed_of_ours": [name for name in ours if _is_installed(name)],
                "report": as_values(asked(load=True)),
            }
        )
    )


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
