"""What the name of a value says about it: a password, a secret, a key that may be one, or nothing.

Names come from assignments, headers, flags, JSON keys and prose: ``DB_PASSWORD``, ``x-api-key``, ``clientSecret``.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from coatcheck.compaction.redaction.wordlists import words


class NameClass(Enum):
    """How much of a value has to speak for itself under this name, from least to most."""

    PASSWORD = "password"
    """People choose these: short and plain values count."""
    SECRET = "secret"
    """Machines make these: the value has to look made, or to stand in an environment file."""
    KEY = "key"
    """Mostly no secret at all (a dictionary's key, a sort key): the value has to be opaque by itself."""
    NOTHING = "nothing"


_COMPONENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")

_PRODUCTS = re.compile(r"(?i)1password|auth0|keepassx?c?|lastpass|bitpass|passport|passbolt")
"""Names of products that hold a password's name."""

_PASSWORD_WORDS = words(
    """
    password passwords psk passwd passphrase passphrases passcode passcodes passwort pwd pw psw pswd pass passw kennwort
    contraseña contrasena senha mdp
    motdepasse wachtwoord lösenord hasło heslo şifre parola пароль 密码 口令 パスワード 비밀번호
    """
)
_SECRET_WORDS = {
    "secret": "secret",
    "secrets": "secret",
    "token": "token",
    "tokens": "token",
    "apikey": "api-key",
    "accesskey": "access-key",
    "secretkey": "secret-key",
    "privatekey": "private-key",
    "accountkey": "access-key",
    "sharedaccesskey": "access-key",
    "sharedaccesssignature": "access-key",
    "accesstoken": "token",
    "authtoken": "token",
    "credential": "credential",
    "credentials": "credential",
    "cred": "credential",
    "creds": "credential",
    "auth": "credential",
    "authorization": "credential",
    "bearer": "token",
    "jwt": "token",
    "pat": "token",
    "sas": "token",
    "otp": "token",
    "cookie": "cookie",
    "cookies": "cookie",
    "токен": "token",
    "секрет": "secret",
    "令牌": "token",
    "密钥": "api-key",
    "秘钥": "api-key",
    "トークン": "token",
    "토큰": "token",
}
_KEY_WORDS = words(
    """
    key keys sig signature hmac seed sid sessionid salt pepper license ключ
    """
)
_SESSION_COOKIE = re.compile(r"(?i)(?:.*[^a-z])?(?:phpsessid|jsessionid|aspsessionid[a-z]{0,8}|asp\.net_sessionid)")
"""Names that a server's framework gives its sessions' ids, wherever they stand: who has one is logged in."""
_SECRET_KEYS = words(
    """
    api access private secret signing signature sign encryption encrypt encrypted decryption decrypt master auth
    authentication service admin license licence shared storage account deploy subscription app application consumer
    webhook hmac jwt write ingest function functions client security aes des rsa ecdsa ed25519 ssh gpg pgp tls ssl
    wallet bot integration sdk merchant flask django rails fernet kms vault stripe openai anthropic
    """
)
_ENDINGS_OF_RUN_TOGETHER = ("password", "passwd", "passphrase", "secret", "token", "apikey", "secretkey", "accesskey", "pwd")
_FILLERS = words(
    """
    value val str string text plain plaintext cleartext raw base prod production dev devel development staging stage
    test testing live sandbox old new current previous prev default local data b64 base64 encoded hex env var
    readonly ro rw admin main backup secondary us eu here is
    """
)
_SAYS_NO_SECRET = words(
    """
    public pub publishable foreign primary sort partition cache idempotency dedup dedupe lookup hash page next
    continuation pagination cursor sync cancellation object row column dict map index routing shard group storagekey
    translation i18n locale arrow hot short shortcut keyboard eos bos pad unk sep cls mask special stop prompt
    completion
    """
)
_ENDINGS_OF_OTHER_THINGS = words(
    """
    hash hashed digest sha sha1 rev revision commit etag tag branch sha256 md5 checksum fingerprint id ids uuid guid
    name names url uri endpoint path file filename dir type types count counts limit limits length len size field
    fields policy policies expiry expires expiration ttl lifetime age timeout usage used budget rotation version
    manager provider providers store service server client handler factory class func function method required
    optional enabled disabled valid validator validation reset change changed changes update label title hint
    placeholder prompt message msg error errors regex pattern format prefix suffix index idx list set map dict table
    column row generator encoder encoding decoder parser ref refs arn code state status info options option opts
    config settings key rate per total max min strength score scope scopes audience issuer subject algorithm alg
    mode kind source
    """
)


@lru_cache(maxsize=4096)
def classify(name: str) -> tuple[NameClass, str]:
    """The class of a name, and the kind of secret that a placeholder for its value should state."""
    if "sess" in name.lower() and _SESSION_COOKIE.fullmatch(name):
        return NameClass.SECRET, "session-id"
    parts = [part.lower() for part in _COMPONENT.findall(_PRODUCTS.sub("", name))]
    while len(parts) > 1 and (parts[-1] in _FILLERS or parts[-1].isdigit()):
        parts.pop()
    if not parts:
        return NameClass.NOTHING, ""
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    says_no = bool(_SAYS_NO_SECRET.intersection(parts[:-1]))
    if last in _PASSWORD_WORDS:
        return (NameClass.NOTHING, "") if before in ("by", "com", "tres", "hashed") else (NameClass.PASSWORD, "password")
    if last in _SECRET_WORDS:
        return (NameClass.NOTHING, "") if says_no else (NameClass.SECRET, _SECRET_WORDS[last])
    if last in _KEY_WORDS:
        return (NameClass.NOTHING, "") if says_no else _key(last, before)
    return _run_together(last, all_capitals=name.isupper()) or _by_other_parts(parts)


def _key(last: str, before: str) -> tuple[NameClass, str]:
    if last in ("key", "keys") and before in _SECRET_KEYS:
        return NameClass.SECRET, f"{before}-key" if before in ("api", "access", "secret", "private") else "key"
    if last in ("key", "keys", "license", "ключ"):
        return NameClass.KEY, "key"
    return NameClass.KEY, "signature" if last.startswith("sig") else "session-id" if last == "sessionid" else "secret"


def _run_together(last: str, *, all_capitals: bool) -> tuple[NameClass, str] | None:
    """``PGPASSWORD``, ``githubtoken``: the last word with something before it that no capital and no sign sets off."""
    if all_capitals and last.endswith("pass") and last not in ("bypass", "compass", "trespass"):
        return NameClass.PASSWORD, "password"
    ending = next((ending for ending in _ENDINGS_OF_RUN_TOGETHER if last.endswith(ending)), None)
    if ending is None:
        return None
    kind = _SECRET_WORDS.get(ending)
    return (NameClass.PASSWORD, "password") if kind is None else (NameClass.SECRET, kind)


def _by_other_parts(parts: list[str]) -> tuple[NameClass, str]:
    """A name that mentions a secret and ends in another word: often about it (``token_count``), sometimes it (``TOKEN_RO2``)."""
    if parts[-1] in _ENDINGS_OF_OTHER_THINGS:
        return NameClass.NOTHING, ""
    mentions = any(part in _PASSWORD_WORDS or part in _SECRET_WORDS or part in _KEY_WORDS for part in parts)
    return (NameClass.KEY, "secret") if mentions else (NameClass.NOTHING, "")
