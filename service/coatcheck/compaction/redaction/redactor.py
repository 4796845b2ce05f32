"""Takes the secrets out of texts and messages, and puts typed placeholders in their place.

Fails closed: a scanner that errs or is late, and a text that will not settle, raise RedactionFailed, and nothing is returned;
a text that takes too much processor time, RedactionTooCostly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from coatcheck.compaction import effort
from coatcheck.compaction.redaction.detector import Detector
from coatcheck.compaction.redaction.finder import Leaf
from coatcheck.compaction.redaction.nested import key_of, with_key, with_value
from coatcheck.compaction.redaction.seams import bridged
from coatcheck.compaction.redaction.settling import NO_SECRETS, Settled, settle, settle_beside
from coatcheck.domain.canonical import JsonObject, JsonValue, pointer, value_at
from coatcheck.domain.canonical import Path as JsonPath
from coatcheck.domain.errors import FieldError, InvalidRequest
from coatcheck.domain.messages import Field, FieldClass, Reading, WireFormat
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.values import value

THINKING_MARKER = "[REDACTED: this thinking held a secret]"
MAX_STRUCTURAL_CHARS = 200
_SHORTEST_TOKEN = 16
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TEXTS = frozenset((("content",), ("text",), ("output",)))
_SELF_EVIDENT = 1
"""The rank up to which a finding says by itself what it is: what an id may look like does not."""


@dataclass(frozen=True, slots=True)
class RedactedText:
    """A text without its secrets, and how many of each kind went."""

    text: str
    counts: Mapping[str, int]


@value
class RedactedMessage:
    """A message without its secrets, and how many of each kind went."""

    message: JsonObject
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RedactedSystem:
    """The system field's value without its secrets, and how many of each kind went."""

    system: JsonValue
    counts: Mapping[str, int]


class Redactor:
    """Cheap to build; the rules load at first use, once. May be used from several threads."""

    def __init__(self, cache_dir: Path | None = None, own_rules: Path | None = None) -> None:
        """``cache_dir`` keeps the compiled rules; ``own_rules`` are the operator's, in kingfisher's YAML.

        Raises RefusedToStart where one of the operator's rules would do nothing.
        """
        self._detector = Detector(cache_dir or default_cache_dir(), own_rules)

    @property
    def revision(self) -> str:
        """The revision of the rules, of this code and of the scanner."""
        return self._detector.revision

    def warm(self) -> None:
        """Loads the rules now; compiles them when they are not in the cache."""
        self._detector.warm()

    def redact_text(self, text: str, keys: PlaceholderKeys, *, key_name: str | None = None) -> RedactedText:
        """One text. ``key_name`` is the key that it stands under, which may be all that makes it a secret."""
        with effort.bounded():
            settled = settle(self._detector, [Leaf(text, key_name)], keys)[0]
        return RedactedText(settled.text, settled.counts)

    def redact_message(self, wire: WireFormat, message: JsonObject, keys: PlaceholderKeys, *, at: JsonPath) -> RedactedMessage:
        """A message, leaf by leaf. Raises InvalidRequest for a structural field that is malformed or holds a secret."""
        return _redacted_message(*self._redact(wire, [(message, wire.read(message).fields, at)], keys)[0])

    def redact_messages(
        self,
        wire: WireFormat,
        messages: Sequence[JsonObject],
        keys: PlaceholderKeys,
        *,
        at: JsonPath,
        readings: Sequence[Reading] | None = None,
        first: int = 0,
    ) -> list[RedactedMessage]:
        """As ``redact_message``, of each message of the list at ``at``, from its ``first`` on: many short ones share a scan.

        What lies over two messages is found here alone.
        """
        if readings is None:
            readings = [wire.read(message) for message in messages]
        documents = zip(messages, readings, strict=True)
        read = [(message, reading.fields, (*at, index)) for index, (message, reading) in enumerate(documents, first)]
        try:
            redacted = self._redact(wire, read, keys)
        except InvalidRequest:  # the first of several is told
            return [self.redact_message(wire, message, keys, at=(*at, index)) for index, message in enumerate(messages, first)]
        return [_redacted_message(*document) for document in redacted]

    def redact_system(self, wire: WireFormat, system: JsonValue, keys: PlaceholderKeys, *, at: JsonPath) -> RedactedSystem:
        """As ``redact_message``, of the bare value of the system field."""
        redacted, counts = self._redact(wire, [(system, wire.read_system(system).fields, at)], keys)[0]
        return RedactedSystem(redacted, counts)

    def _redact(
        self, wire: WireFormat, documents: Sequence[tuple[JsonValue, Iterable[Field], JsonPath]], keys: PlaceholderKeys
    ) -> list[tuple[JsonValue, Mapping[str, int]]]:
        """Documents, each with its fields and where it stands."""
        content: list[list[Field]] = []
        watched: list[list[tuple[Field, Leaf]]] = []
        leaves: list[Leaf] = []
        in_order: list[int] = []
        for document, fields, at in documents:
            structural: list[Field] = []
            of_content: list[Field] = []
            for field in fields:
                if field.field_class is FieldClass.CONTENT:
                    of_content.append(field)
                    if _is_text(field):
                        in_order.append(len(leaves))
                    leaves.append(_leaf(document, field))
                elif field.field_class is FieldClass.STRUCTURAL:
                    structural.append(field)
            content.append(of_content)
            watched.append(_checked(document, structural, at))
        with effort.bounded():
            over_seams = bridged(self._detector, leaves, in_order, keys) if len(in_order) > 1 else {}
            for number, one in over_seams.items():
                leaves[number] = one.leaf
            settled, seen = settle_beside(self._detector, leaves, [leaf for of_one in watched for _, leaf in of_one], keys)
        for number, one in over_seams.items():
            settled[number] = Settled(settled[number].text, Counter(settled[number].counts) + Counter(one.counts))
        texts, beside = iter(settled), iter(seen)
        redacted: list[tuple[JsonValue, Mapping[str, int]]] = []
        for (document, _, at), of_content, structure in zip(documents, content, watched, strict=True):
            for field, _ in structure:
                if any(cover.rank <= _SELF_EVIDENT for cover in next(beside)):
                    raise _refused(at, field, "This value looks like a secret, and may not be rewritten.")
            changed = [(field, text) for field in of_content if (text := next(texts)).counts]
            redacted.append(_rebuilt(wire, document, changed) if changed else (document, NO_SECRETS))
        return redacted


def default_cache_dir() -> Path:
    """Where the compiled rules are kept: the user's cache directory, not the data directory."""
    return Path(platformdirs.user_cache_dir("coatcheck")) / "rules"


def warm(cache_dir: Path | None = None) -> None:
    """Compiles the rules ahead of the first start, so that it does not wait."""
    Redactor(cache_dir).warm()


def _redacted_message(redacted: JsonValue, counts: Mapping[str, int]) -> RedactedMessage:
    if not isinstance(redacted, dict):
        raise TypeError("a message stays an object")
    return RedactedMessage(redacted, counts)


def _checked(document: JsonValue, fields: Iterable[Field], at: JsonPath) -> list[tuple[Field, Leaf]]:
    """The structural fields that are long enough to be a token, once all of them are well formed."""
    leaves = []
    for field in fields:
        text = _string_at(document, field)
        if len(text) > MAX_STRUCTURAL_CHARS:
            raise _refused(at, field, f"This value is longer than {MAX_STRUCTURAL_CHARS} characters.")
        if _CONTROL.search(text):
            raise _refused(at, field, "This value holds a control character or a lone surrogate.")
        if len(text) >= _SHORTEST_TOKEN:
            leaves.append((field, Leaf(text)))
    return leaves


def _is_text(field: Field) -> bool:
    """Whether a leaf is what its message says, and may go on in the next one's."""
    return not field.is_key and field.thinking_block is None and field.path[-1:] in _TEXTS


def _leaf(document: JsonValue, field: Field) -> Leaf:
    if field.is_key:
        return Leaf(str(field.path[-1]))
    return Leaf(_string_at(document, field), key_of(document, field.path))


def _string_at(document: JsonValue, field: Field) -> str:
    value = str(field.path[-1]) if field.is_key else value_at(document, field.path)
    if not isinstance(value, str):
        raise TypeError("a field names a string")
    return value


def _refused(at: JsonPath, field: Field, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, errors=[FieldError(pointer((*at, *field.path)), detail)])


def _rebuilt(wire: WireFormat, document: JsonValue, changed: list[tuple[Field, Settled]]) -> tuple[JsonValue, Mapping[str, int]]:
    """Values first, then whole thinking blocks, then keys, the deepest first: paths name the document as it was."""
    counts: Counter[str] = Counter()
    blocks: set[JsonPath] = set()
    renamed: list[tuple[JsonPath, str]] = []
    for field, settled in changed:
        counts.update(settled.counts)
        if field.thinking_block is not None:
            blocks.add(field.thinking_block)
        elif field.is_key:
            renamed.append((field.path, settled.text))
        else:
            document = with_value(document, field.path, settled.text)
    for block in blocks:
        document = with_value(document, block, wire.thinking_marker(value_at(document, block), THINKING_MARKER))
    for path, key in sorted(renamed, key=lambda item: -len(item[0])):
        document = with_key(document, path, key)
    return document, counts
