"""Rules that read a value once, in document order, and find its string leaves and its sites.

A rule takes a value and its path and yields findings. Every rule takes a value of any type: what is not of the type it was
made for is carried as content, so that no string escapes redaction because of a shape nobody thought of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from coatcheck.domain.canonical import JsonValue, Path, value_at
from coatcheck.domain.messages import Encoding, Field, FieldClass, PartKind, Reading, Role, Site
from coatcheck.domain.values import value
from coatcheck.formats.leaves import MEDIA_KEYS, strings, walk
from coatcheck.formats.strings import class_of, data_url_media, is_base64, is_ciphertext, is_label


@value
class Loose:
    """A value of no fixed form that holds no site."""

    value: JsonValue
    path: Path
    thinking_block: Path | None = None


Finding = Field | Site | Loose
Rule = Callable[[JsonValue, Path], Iterator[Finding]]

_ENUMERATIONS = ("type", "role", "object", "status", "phase", "stop_reason", "finish_reason")
_IDS = ("id", "call_id", "tool_call_id", "tool_use_id", "item_id", "file_id")
LABEL_KEYS = frozenset((*_ENUMERATIONS, *MEDIA_KEYS, *_IDS))
"""Keys of a message, an item or a block whose values choose or link, whatever its type. Below that level all is content."""


@value
class Place:
    """What the parts found at one place of a message have in common."""

    role: Role
    kind: PartKind = PartKind.TEXT
    call_id: str | None = None
    name: str | None = None

    def site(self, path: Path, encoding: Encoding = "string", kind: PartKind | None = None, media_type: str | None = None) -> Site:
        return Site(path, kind or self.kind, encoding, self.role, self.call_id, self.name, media_type)


# --- data of no fixed form


def free(value: JsonValue, path: Path) -> Iterator[Finding]:
    """Free-form data (a tool's input, metadata): every string and every key is content."""
    return iter((Loose(value, path),))


def extra(place: Place) -> Rule:
    """A key that the format does not define: carried in the frame, but for binary data in it, which becomes a blob."""

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        if not any(field_class is FieldClass.BLOB for _, field_class in strings(value)):
            yield Loose(value, path)
            return
        for field in walk(value, path):
            yield field
            if field.field_class is FieldClass.BLOB:
                yield blob_within(value, path, field.path, place)

    return rule


def blob_within(value: JsonValue, path: Path, at: Path, place: Place) -> Site:
    """The site of binary data at ``at``, somewhere in the value at ``path``."""
    below = at[len(path) :]
    holder = value_at(value, below[:-1])
    stated = [holder.get(key) for key in MEDIA_KEYS] if isinstance(holder, dict) else []
    media_types = (data_url_media(value_at(value, below)), *filter(is_label, stated))
    return place.site(at, kind=PartKind.BLOB, media_type=next((media for media in media_types if isinstance(media, str)), None))


# --- single values


def structural(value: JsonValue, path: Path) -> Iterator[Finding]:
    """A role, a type or an id that the format itself defines and that links messages: structural, whatever it holds."""
    return iter((Field(path, FieldClass.STRUCTURAL) if isinstance(value, str) else Loose(value, path),))


def label(value: JsonValue, path: Path) -> Iterator[Finding]:
    """Structural while it looks like a label, else content."""
    return iter((Field(path, FieldClass.STRUCTURAL) if is_label(value) else Loose(value, path),))


def ciphertext(value: JsonValue, path: Path) -> Iterator[Finding]:
    """Encrypted content or a signature. What holds white space or other characters than ASCII is neither, but content."""
    return iter((Field(path, FieldClass.CIPHERTEXT) if is_ciphertext(value) else Loose(value, path),))


def text(place: Place) -> Rule:
    """A string that is a part of its own."""

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        if not isinstance(value, str):
            return free(value, path)
        if class_of(value) is FieldClass.BLOB:
            return blob(place)(value, path)
        return iter((Field(path, FieldClass.CONTENT), place.site(path)))

    return rule


def blob(place: Place, media_type: JsonValue = None) -> Rule:
    """A string that the format says is base64, or a data URL. One that is neither ("image left out") is content."""

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        in_url = data_url_media(value)
        if in_url or is_base64(value):
            stated = media_type if isinstance(media_type, str) and is_label(media_type) else None
            yield Field(path, FieldClass.BLOB)
            yield place.site(path, kind=PartKind.BLOB, media_type=in_url or stated)
        else:
            yield from free(value, path)

    return rule


def words_or_json(place: Place) -> Rule:
    """A part of its own, as text where it is a string, else as JSON text."""
    words, data = text(place), as_json(place)
    return lambda value, path: words(value, path) if isinstance(value, str) else data(value, path)


def as_json(place: Place) -> Rule:
    """Free-form data that is a part of its own, as JSON text."""

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        yield place.site(path, "json")
        yield from free(value, path)

    return rule


# --- objects and lists


def reading_of(findings: Iterable[Finding]) -> Reading:
    """The findings sorted into fields and sites, and loose values walked."""
    fields: list[Field] = []
    sites: list[Site] = []
    for finding in findings:
        if isinstance(finding, Site):
            sites.append(finding)
        elif isinstance(finding, Field):
            fields.append(finding)
        elif finding.thinking_block is None:
            fields.extend(walk(finding.value, finding.path))
        else:
            fields.extend(replace(field, thinking_block=finding.thinking_block) for field in walk(finding.value, finding.path))
    return Reading(tuple(fields), tuple(sites))


def members(value: JsonValue, path: Path, rules: Mapping[str, Rule], other: Rule) -> Iterator[Finding]:
    """An object with known keys: each key's value by its rule, labels as labels, unknown keys named and read by ``other``."""
    if not isinstance(value, dict):
        return free(value, path)
    found: list[Finding] = []
    for key, item in value.items():
        at = (*path, key)
        rule = rules.get(key) or (label if key in LABEL_KEYS else None)
        if rule is None:
            found.append(Field(at, FieldClass.CONTENT, is_key=True))
            rule = other
        found.extend(rule(item, at))
    return iter(found)


def each(item_rule: Rule) -> Rule:
    """A list, item by item; a value that is no list by itself."""

    def rule(value: JsonValue, path: Path) -> Iterator[Finding]:
        if isinstance(value, list):
            for position, item in enumerate(value):
                yield from item_rule(item, (*path, position))
        else:
            yield from item_rule(value, path)

    return rule


def or_whole(fallback: Site, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings; where no site is among them, the fallback as the one site. A result with ciphertext in it is opaque."""
    found = list(findings)
    for finding in found:
        if isinstance(finding, Site):
            return iter(found)
    is_sealed = any(isinstance(finding, Field) and finding.field_class is FieldClass.CIPHERTEXT for finding in found)
    is_sealed_result = is_sealed and fallback.kind is PartKind.TOOL_RESULT
    return iter((replace(fallback, kind=PartKind.OPAQUE) if is_sealed_result else fallback, *found))


def parts_of(
    value: JsonValue, path: Path, place: Place, rules: Mapping[str, Rule], whole_as: PartKind | None = None
) -> Iterator[Finding]:
    """An object's parts: those that its known keys hold, unknown ones carried; where there is none, the object is the one part.

    ``whole_as``: of which kind it then is, where that is not the place's.
    """
    return or_whole(place.site(path, "json", kind=whole_as), members(value, path, rules, extra(place)))


def of_thinking(block: Path, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of a thinking block: each leaf of its content knows the block that a secret in it replaces."""
    for finding in findings:
        if isinstance(finding, Loose) or (isinstance(finding, Field) and finding.field_class is FieldClass.CONTENT):
            yield replace(finding, thinking_block=block)
        else:
            yield finding
