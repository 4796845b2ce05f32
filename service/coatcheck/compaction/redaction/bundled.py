"""The bundled rules' matches: which of them tell secrets, and when a vendor's name beside a hash is only that."""

from __future__ import annotations

import re
from functools import lru_cache

from coatcheck.compaction.redaction.assignments import is_code
from coatcheck.compaction.redaction.detector import Hit
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.setting import setting_before
from coatcheck.compaction.redaction.shapes import (
    in_digest_or_blob,
    is_hash_or_uuid,
    is_opaque,
    is_path_or_url,
    is_placeholder,
    word_share,
)
from coatcheck.compaction.redaction.values import Value

_NO_SECRET = re.compile(
    r"(?:^|[.-])(?:client-id|application-id|app-id|account-id|tenant-id|access-id|api-id|auth-id|key-id|token-id|sa-id|-id|planetscale-id"
    r"|name|username|url|host|domain|address|repository|public-key|public-api-token|service-account-id|email)(?:\.[0-9])?$"
)
_SECRET_ALL_THE_SAME = frozenset(
    ("betterleaks.slack-webhook-url", "betterleaks.alibaba-access-key-id", "betterleaks.alibaba-sts-access-key-id")
)
_DONE_BY_OURS = frozenset(
    (
        "betterleaks.private-key",
        "betterleaks.gcp-service-account",
        "betterleaks.gcp-application-default-credentials",
        "betterleaks.kubernetes-secret-yaml",
        "betterleaks.curl-auth-header",
        "betterleaks.curl-auth-user",
        "betterleaks.generic-credential-uri",
        "betterleaks.mongodb-connection-string",
        "veles.secrets/bitbucketcredentials",
        "veles.secrets/codecatalystcredentials",
        "veles.secrets/codecommitcredentials",
    )
)
"""Rules that capture a whole document, command or URL where ours capture the secret in it."""

_FAMILIES = (
    ("github-", "github-token"),
    ("gitlab-", "gitlab-token"),
    ("slack-", "slack-token"),
    ("slackapp", "slack-token"),
    ("aws-access", "aws-access-key"),
    ("aws-secret", "aws-secret-key"),
    ("aws-session", "aws-session-token"),
    ("jwt", "jwt"),
    ("gcp-api", "google-key"),
    ("stripe-", "stripe-key"),
    ("anthropic-", "anthropic-key"),
    ("openai-", "openai-key"),
    ("age-secret", "age-key"),
)
_OWN_PREFIX = re.compile(r"[A-Za-z]{2,}[A-Za-z0-9]*[_.~:-]|AKIA|ASIA|AIza|eyJ|EAA|LTAI")


def bundled_secret(text: str, hit: Hit) -> tuple[Value, str, int] | None:
    """The secret in a bundled rule's match, its kind and its rank; None where the match is none."""
    if not tells_secrets(hit.rule):
        return None
    value = Value(hit.start, hit.end, text[hit.start : hit.end])
    content = value.text.strip("\"'` ")
    if is_placeholder(content) or "EXAMPLE" in content or in_digest_or_blob(text, hit.start, content):
        return None
    kind = kind_of_rule(hit.rule)
    if _OWN_PREFIX.match(content) and not is_hash_or_uuid(content):
        if word_share(content) >= 0.75 or is_code(content):
            return None
        return value, kind, 0
    setting = setting_before(text, value)
    name_class = classify(setting.name)[0] if setting else NameClass.NOTHING
    if is_hash_or_uuid(content) or content.isdigit():
        return (value, kind, 1) if name_class is not NameClass.NOTHING else None
    if is_path_or_url(content) and "hooks" not in content and "webhook" not in content:
        return None
    if name_class is NameClass.NOTHING and not is_opaque(content, 16):
        return None
    return (value, kind, 1) if word_share(content) < 0.7 and not is_code(content) else None


@lru_cache(maxsize=1024)
def tells_secrets(rule: str) -> bool:
    """Whether a bundled rule's capture is a secret: not an id, a name, an address, and not what our own rules read better."""
    return rule in _SECRET_ALL_THE_SAME or (rule not in _DONE_BY_OURS and not _NO_SECRET.search(rule))


@lru_cache(maxsize=1024)
def kind_of_rule(rule: str) -> str:
    """A short name for what a bundled rule finds."""
    name = re.sub(r"\.[0-9]+$", "", rule.removeprefix("betterleaks.").removeprefix("veles.secrets/"))
    for prefix, kind in _FAMILIES:
        if name.startswith(prefix):
            return kind
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
