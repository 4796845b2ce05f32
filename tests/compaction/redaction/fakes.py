"""Made-up secrets, put together when a test runs: nothing in this repository has the shape of one."""

from __future__ import annotations

import base64
import json
import random
import string

from coatcheck.domain.placeholders import PlaceholderKeys

KEYS = PlaceholderKeys(tenant_key=b"tenant-key-of-the-redaction-test", session_key=b"session-key-of-the-redaction-tst")
OTHER_SESSION = PlaceholderKeys(tenant_key=KEYS.tenant_key, session_key=b"another-session-of-the-same-test")

LETTERS_AND_DIGITS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE64 = LETTERS_AND_DIGITS + "+/"
BASE64_URL = LETTERS_AND_DIGITS + "-_"


class Fakes:
    """Secrets of a seed: the same ones in every run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def opaque(self, length: int, alphabet: str = LETTERS_AND_DIGITS) -> str:
        """Letters and digits, at least one digit and one capital among them when the alphabet has both."""
        while True:
            value = "".join(self._random.choice(alphabet) for _ in range(length))
            mixed = any(char.isdigit() for char in value) and any(char.isupper() for char in value)
            if mixed or not (set(alphabet) & set(string.ascii_uppercase)):
                return value

    def password(self, length: int = 12) -> str:
        return self.opaque(length - 2) + self._random.choice("!#%^*") + self._random.choice("123456789")

    def hexadecimal(self, length: int) -> str:
        return self.opaque(length, HEX)

    def uuid(self) -> str:
        return "-".join(self.hexadecimal(length) for length in (8, 4, 4, 4, 12))

    def github(self) -> str:
        return "gh" + "p_" + self.opaque(36)

    def anthropic(self) -> str:
        return "sk-" + "ant-" + "api03-" + self.opaque(93, BASE64_URL) + "AA"

    def slack(self) -> str:
        return "xo" + "xb-" + self.opaque(12, "123456789") + "-" + self.opaque(13, "123456789") + "-" + self.opaque(24)

    def aws_id(self) -> str:
        return "AK" + "IA" + self.opaque(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")

    def jwt(self, padding: int = 40) -> str:
        head = _base64_url(json.dumps({"alg": "HS256", "typ": "JWT"}))
        claims = _base64_url(json.dumps({"sub": self.opaque(8), "pad": self.opaque(padding)}))
        return f"{head}.{claims}.{self.opaque(43, BASE64_URL)}"

    def pem(self, label: str = "RSA PRIVATE KEY", lines: int = 12) -> tuple[str, list[str]]:
        """A private key and the lines of its body."""
        body = [self.opaque(64, BASE64) for _ in range(lines)] + [self.opaque(40, BASE64) + "=="]
        dashes = "-" * 5
        return "\n".join([f"{dashes}BEGIN {label}{dashes}", *body, f"{dashes}END {label}{dashes}"]), body


def left_of(secret: str, text: str) -> int:
    """How many characters of a secret still stand in a text in one piece: the longest common run."""
    longest = 0
    for start in range(len(secret)):
        while start + longest < len(secret) and secret[start : start + longest + 1] in text:
            longest += 1
    return longest


def _base64_url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
