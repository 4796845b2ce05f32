"""Secrets to plant, made at run time: none stands in the repository, and none is anybody's."""

from __future__ import annotations

import base64
import json
import secrets
import string

LETTERS = string.ascii_letters + string.digits


def word(length: int, alphabet: str = LETTERS) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def github() -> str:
    return "ghp" + "_" + word(36)


def aws() -> str:
    return "AKIA" + word(16, string.ascii_uppercase + "234567")


def slack() -> str:
    return "-".join(("xoxb", word(12, string.digits), word(13, string.digits), word(24)))


def password() -> str:
    """Nothing by itself: what it stands beside makes it one."""
    return "Tr" + word(10) + "9x"


def jwt() -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return ".".join((part({"alg": "HS256", "typ": "JWT"}), part({"sub": word(10), "iat": 1_700_000_000}), word(43)))


def private_key() -> str:
    """A block as a file holds it; its lines are secrets each."""
    lines = [word(64, LETTERS + "+/") for _ in range(12)]
    kind = "PRIVATE KEY"
    return "\n".join([f"-----BEGIN RSA {kind}-----", *lines, f"-----END RSA {kind}-----"])
