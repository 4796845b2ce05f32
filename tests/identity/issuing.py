"""A token issuer for tests: its keys, its key set, and tokens as it signs them."""

from __future__ import annotations

import base64
import functools
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://login.example.org/"
AUDIENCE = "https://memory.example.org"


@functools.cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """A key of the kind that the algorithm signs with; another for each number."""
    match algorithm:
        case "RS256" | "PS256" | "RS512":
            return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        case "RS256-short":
            return rsa.generate_private_key(public_exponent=65_537, key_size=1_024)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case _:
            return ed25519.Ed25519PrivateKey.generate()


def public_jwk(algorithm: str, kid: str, number: int = 0, **more: object) -> dict[str, Any]:
    """The public half, as it stands in a key set."""
    key = private_key(algorithm, number).public_key()
    maker: Any = RSAAlgorithm if isinstance(key, rsa.RSAPublicKey) else ECAlgorithm if algorithm.startswith("ES") else OKPAlgorithm
    made: dict[str, Any] = {**json.loads(maker.to_jwk(key)), "kid": kid, "use": "sig"}
    made.pop("key_ops", None)
    return {**made, **more}


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def claims(subject: str = "ada", **changes: object) -> dict[str, Any]:
    """What a good token says; a change of None takes the claim out."""
    now = int(time.time())
    plain = {"iss": ISSUER, "sub": subject, "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + 600, "jti": "1", **changes}
    return {name: value for name, value in plain.items() if value is not None}


def token(
    said: dict[str, Any] | None = None,
    *,
    algorithm: str = "ES256",
    kid: str | None = "one",
    number: int = 0,
    key: Any = None,
    **header: object,
) -> str:
    """Signed by the issuer, or with another ``key``."""
    headers = {"typ": "at+jwt", **({"kid": kid} if kid is not None else {}), **header}
    signing = key if key is not None else private_key(algorithm, number)
    # Past the library's own checks of what it is asked to sign.
    return jwt.PyJWS().encode(json.dumps(claims() if said is None else said).encode(), signing, algorithm, headers)


def unsigned(said: dict[str, Any], **header: object) -> str:
    """A token that claims to need no signature."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none', 'typ': 'JWT', 'kid': 'one', **header})}.{part(said)}."
