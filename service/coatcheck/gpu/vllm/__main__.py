"""``python -m coatcheck.gpu.vllm``: what the plugin finds beside this Python, as JSON. Needs vLLM at most."""

from __future__ import annotations

import sys

from coatcheck.gpu.vllm.asking import as_json, asked


def main(arguments: list[str]) -> int:
    """Exits with 1 where no vLLM is installed. ``--load`` imports what the plugin waits for."""
    report = asked(load="--load" in arguments)
    sys.stdout.write(as_json(report) + "\n")
    return 0 if report.vllm else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
