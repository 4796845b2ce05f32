"""A process in which no connection can be made, and each that is tried is counted."""

from __future__ import annotations

import subprocess
import sys

REFUSING = """
import socket, sys
tried = []
def refuse(*arguments, **named):
    tried.append(arguments)
    raise OSError("no network")
socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = refuse
"""
"""What a process runs first; ``tried`` are its attempts."""


def in_a_process(code: str, *arguments: str) -> str:
    """The last line that the code prints."""
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=180, check=True)
    return run.stdout.split("\n")[-2]
