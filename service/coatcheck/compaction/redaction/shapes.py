"""What a value looks like: a placeholder, a hash, an identifier of code, words, or something opaque."""

from __future__ import annotations

import re
from functools import lru_cache

from coatcheck.compaction.redaction.wordlists import words

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
_HASH = re.compile(r"(?:0x)?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})\Z", re.IGNORECASE)
_DIGEST_WITH_NAME = re.compile(r"(?:sha(?:1|224|256|384|512)|md5|h1)[:=-][A-Za-z0-9+/=]{20,}\Z", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DIGIT = re.compile(r"[0-9]")
_SEPARATOR = re.compile(r"[_.-]")
_ALNUM = re.compile(r"[A-Za-z0-9]")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*\Z")

_COMMON_BIGRAMS = words(
    """
    th he in er an re nd at on nt ha es st en ed to it ou ea hi is or ti as te et ng of al de se le sa si ar ve ra
    ld ur ro ri io ic ne me li co ll ta ch ma om ce ho el la di tr ec ns ss no ac ct us il em ee ge rs ni ot pe un
    ly ol ai lo ut wi ad id ts mo ul so be fo ig po pr ca pa ir ie ay su sh ow im gh tt os bu wa ck ab ev iv op ke
    pl tu ci vi sp oo do uc rt ty bl av wh fi am gr da fr if mi rm na ex cl br cr fe ag ap ep ry ga go ga gi ew ef
    bo ba bi ob up ub um od oc oa ki ks kn lu ls lt ly lf lk ms mp mm nc nf nk nn nu nv oi og ok ov ox ph ps qu rd
    rg rk rl rn rp rr ru rv sc sk sl sm sn sw sy tc tl tm tw ua ue ug ui va vo we wo wn ws xt xp xi xa ye yo ys yp
    za ze zi zo ff fu ft eb ed eg ei ej ek em eo eq er ey ez az aw au af ah aj ak ao bs by dd dl dr ds du dy dn gl
    gn gs gu gy hr ht hu hy ia ib ik ip it ix iz ja je jo ju ka ku my nl oh oy pd pi pt pu rb rc rf rw tb tf th ud
    vy wl wr xc xe yl ym yn yt zy zz mb mn
    """
)

_PLACEHOLDER_WORDS = words(
    """
    changeme change-me change_me changeit replaceme replace-me replace_me placeholder example sample dummy fake foo
    bar baz foobar foobarbaz test testing tester todo tbd fixme none null nil undefined true false yes no on off
    empty blank unset unknown missing required optional hidden masked redacted removed omitted censored scrubbed
    filtered sanitized obfuscated string str text integer int number boolean bool bytes object any value val default
    password passwd passphrase pass pwd pw secret token key apikey api-key api_key api key apisecret credential
    credentials cred creds auth bearer basic jwt cookie username user admin administrator root guest postgres mysql
    redis mongo rabbitmq localhost mypass here n/a na tba xxx yyy zzz abc abcd input field label name id type self
    this session access refresh signature
    """
)
_TEMPLATE = re.compile(
    r"""(?x)
      [<\[{(] .* [>\]})]                                     # <token>, [your token], {token}, (hidden)
    | \$ (?: \w+ | [{(] .* ) | % (?: [sdrifxv] | \(\w+\)[sdr] | [A-Za-z_]+% ) | @\w+@ | [:?]\w+ | (?: %[sdrifxv] [:@/.,;| -]* )+
    | .* (?: \$\{ | \{\{ | \$\( | <[\w -]+> | %\(\w+\)[sd] ) .*   # a template in the middle
    | \{ [\w.!:'"\[\]() -]* \} .*
    | [*x.•●…_#?=~+·^0-]+                                    # ********, xxxx, ...
    | .* (?: \.{3,} | … | \*{3,} | [xX]{6,} ) .*               # sk-..., abc****
    """
)
_MARKER = re.compile(r"\[REDACTED(?::(?P<kind>[A-Za-z][A-Za-z0-9 _-]{0,39}))?(?::[0-9a-f]{4,16})?\]")
"""Another redactor's mark. What else stands in such brackets is not shielded by them."""
_STAND_IN = re.compile(
    r"""(?ix)
      (?: .* [^a-z] )? (?: your | my ) [_ -] .* | your \w* | .* [_ -]? here
    | (?: put | insert | enter | replace | add | paste | set | fill | use | some | a | an | the | any | foo | bar ) [_ -] .*
    | .* (?: example | placeholder | changeme | change[_-]me | redacted | dummy | not[_-]?real | goes[_-]?here ) .*
    | (?: fake | test | sample | mock | user | invalid | valid | wrong | bad | new | old | no ) [_ -] [a-z_ -]*
    """
)
_EVERYBODYS = re.compile(r"(?i)(?:abc|123|1234|12345|1234567890?|abc123|(?:password|passw0rd|secret|token|foo|test)(?:1|12|123)?)")
_DIGEST_NAME = re.compile(r"(?i)(?:sha(?:1|224|256|384|512)|md5|h1|integrity|checksum|digest)[=:-]\Z")
_BLOB = re.compile(r"[A-Za-z0-9+/]{16}\Z")
_ALGORITHM_OR_NUMBER = re.compile(
    r"""(?ix)
    (?: (?:\d+:)? v?\d+(?:\.\d+)+ [\w.+~:-]* | \d+(?:\.\d+)?[a-z%]{1,4} | \d{4}-\d\d-\d\d.* | [\d:.,/+-]+ | \#\d+ | [a-z]+-\d+
      | (?:rs|hs|es|ps|ed|ec|p|x|ipv|k8s|e2e|win|i18n|l10n|s3|ec2|h2|int|uint|float|web|iso|http|tls|ssl|totp)-?\d[\w-]{0,8}
      | (?:[a-z]+[-_])*(?:sha|md|aes|rsa|hmac|oauth|utf|base|bcrypt|argon|pbkdf|scrypt)-?\d{1,4}(?:[-_][a-z0-9]+)*
      | \w+\(.* | .*\(\) | c\+\+
    ) \W*
    """
)
_FILE_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]*)*\Z|[A-Za-z]:[\\/]|[\w.-]+/[\w./-]+\.[a-z]{1,5}\Z")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://", re.IGNORECASE)


@lru_cache(maxsize=8192)
def is_placeholder(value: str) -> bool:
    """Whether a value stands in for a secret: empty, a variable, a template, a mask, or a word that everybody would guess."""
    bare = value.strip(" \t'\"`*_").strip()
    if len(bare) < 3 or bare.lower() in _PLACEHOLDER_WORDS or _EVERYBODYS.fullmatch(bare):
        return True
    if "abcdefghijklmnop" in bare.lower():
        return True
    if bare.startswith("[REDACTED"):
        marker = _MARKER.fullmatch(bare)
        return marker is not None and word_share(marker["kind"] or "") >= 0.5
    if len(bare) > 200:
        return False
    if bare.startswith("$") and is_opaque(bare[1:], 20):
        return False
    return bool(_TEMPLATE.fullmatch(bare)) or (word_share(bare) >= 0.5 and bool(_STAND_IN.fullmatch(bare)))


def is_hash_or_uuid(value: str) -> bool:
    """Whether a value is exactly a digest in hex, a digest with its algorithm's name, or a UUID."""
    return bool(_HASH.match(value) or _UUID.match(value) or _DIGEST_WITH_NAME.match(value))


def is_algorithm_or_number(value: str) -> bool:
    """Whether letters and digits together are a version, a size, a date, an issue or an algorithm's name."""
    return _ALGORITHM_OR_NUMBER.fullmatch(value) is not None


def in_digest_or_blob(text: str, start: int, content: str) -> bool:
    """Whether what looks like a token is a digest with its algorithm's name, or a stretch inside Base64."""
    before = text[max(0, start - 24) : start]
    if _DIGEST_NAME.search(before):
        return True
    return before[-1:] in ("/", "+") and "_" not in content and "-" not in content and _BLOB.search(before[:-1]) is not None


def is_identifier(value: str) -> bool:
    """Whether a value could be one name in a programming language."""
    return bool(_IDENTIFIER.match(value))


def is_path_or_url(value: str) -> bool:
    """Whether a value is a file's path or a URL."""
    if _URL.match(value):
        return True
    return bool(_FILE_PATH.match(value)) and (len(value) < 16 or word_share(value) >= 0.4 or value.count("/") * 12 > len(value))


@lru_cache(maxsize=8192)
def word_share(value: str) -> float:
    """The part of a value's letters and digits that stands in pronounceable words of three letters and more, 0 to 1."""
    total = len(_ALNUM.findall(value))
    if not total:
        return 1.0
    words = sum(len(word) for word in _WORD.findall(value) if len(word) >= 3 and _pronounceable(word))
    return words / total


def character_classes(value: str) -> int:
    """How many of the four classes occur: lower case, upper case, digits, others."""
    lower = upper = digit = other = False
    for char in value:
        if char.islower():
            lower = True
        elif char.isupper():
            upper = True
        elif char.isdigit():
            digit = True
        else:
            other = True
    return lower + upper + digit + other


def is_opaque(value: str, min_length: int) -> bool:
    """Whether a value looks made by a machine: long enough, varied, and not put together from words."""
    if len(value) < min_length or len(set(value)) < 6 or is_path_or_url(value):
        return False
    if value.isdigit() or word_share(value) >= 0.5:
        return False
    if _SEPARATOR.search(value) and not _DIGIT.search(value):
        return False
    return character_classes(value) >= 2 or len(value) >= 20


def _pronounceable(word: str) -> bool:
    lowered = word.lower()
    if not _VOWEL.search(lowered):
        return False
    rare = sum(lowered[at : at + 2] not in _COMMON_BIGRAMS for at in range(len(lowered) - 1))
    return rare * 5 <= len(lowered)
