"""The parts that judge: names, shapes, values, settings and views."""

from __future__ import annotations

import pytest

from coatcheck.compaction.redaction import Redactor
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.nested import rewritten
from coatcheck.compaction.redaction.setting import setting_before
from coatcheck.compaction.redaction.shapes import is_hash_or_uuid, is_opaque, is_placeholder
from coatcheck.compaction.redaction.values import read, read_line
from coatcheck.compaction.redaction.view import decoded, joined, plain
from tests.compaction.redaction.fakes import BASE64_URL, HEX, KEYS, Fakes


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DB_PASSWORD", NameClass.PASSWORD),
        ("PGPASSWORD", NameClass.PASSWORD),
        ("userPwd", NameClass.PASSWORD),
        ("spring.datasource.password", NameClass.PASSWORD),
        ("DB_PW", NameClass.PASSWORD),
        ("пароль", NameClass.PASSWORD),
        ("x-api-key", NameClass.SECRET),
        ("clientSecret", NameClass.SECRET),
        ("AWS_SECRET_ACCESS_KEY", NameClass.SECRET),
        ("SECRET_KEY_BASE", NameClass.SECRET),
        ("client-key-data", NameClass.SECRET),
        ("githubtoken", NameClass.SECRET),
        ("openai_key", NameClass.SECRET),
        ("FAL_KEY", NameClass.KEY),
        ("sortKey", NameClass.NOTHING),
        ("public_key", NameClass.NOTHING),
        ("max_tokens_count", NameClass.NOTHING),
        ("password_hash", NameClass.NOTHING),
        ("token_url", NameClass.NOTHING),
        ("secretName", NameClass.NOTHING),
        ("1password", NameClass.NOTHING),
        ("bypass", NameClass.NOTHING),
        ("monkey", NameClass.NOTHING),
        ("author", NameClass.NOTHING),
        ("", NameClass.NOTHING),
    ],
)
def test_a_name_says_how_much_its_value_has_to_say(name: str, expected: NameClass) -> None:
    assert classify(name)[0] is expected


def test_what_machines_make_is_opaque_and_what_people_name_is_not() -> None:
    fakes = Fakes(61)
    made = [fakes.opaque(24, alphabet) for alphabet in (HEX, BASE64_URL, "abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(50)]
    named = [
        "transformers.models.llama.modeling_llama",
        "us-international-altgr-keyboard",
        "AuthenticationProviderFactory",
        "my-app-tls-certificate",
        "/usr/share/doc/openssl",
        "https://host.example/path/to/file",
        "user_preferences_cache_version_2",
    ]

    assert sum(is_opaque(value, 16) for value in made) >= len(made) - 4
    assert not [value for value in named if is_opaque(value, 16)]


def test_a_hash_is_one_by_its_length_and_letters() -> None:
    fakes = Fakes(62)

    assert all(is_hash_or_uuid(fakes.hexadecimal(length)) for length in (32, 40, 64, 128))
    assert is_hash_or_uuid(fakes.uuid())
    assert not is_hash_or_uuid(fakes.hexadecimal(36))


@pytest.mark.parametrize(
    "value", ["", "$TOKEN", "${TOKEN}", "{{ token }}", "<your token>", "********", "your-api-key", "sk-...", "%(pw)s"]
)
def test_what_stands_in_for_a_secret_is_a_placeholder(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ('{"password": "', "a b", '", "x": 1}'),
        (r"{\"password\": \"", "ab", r"\"}"),
        (r"\\\"password\\\": \\\"", "ab", r"\\\", "),
        ('PASSWORD="', 'a\\"b', '" next'),
        ("password=", "ab", "&user=x"),
        ("Password=", "ab", ";Encrypt=True"),
        ("password=", "a;b&c", " next"),
        ("f(password=", "ab", ")"),
        ("password: ", "a(b)", ", next"),
        ("password: ", "ab", "\\nuser: x"),
        ("<p>password: ", "ab", "</p>"),
        ("密码是", "ab", "，请"),
    ],
)
def test_a_value_is_read_to_its_own_end(before: str, value: str, after: str) -> None:
    text = plain(before + value + after).text

    found = read(text, len(before))

    assert found.text == value
    assert text[found.start : found.end] == value


def test_a_header_is_read_to_the_quote_that_was_open_before_it() -> None:
    before = "curl -H 'Authorization: Bearer "

    assert read_line(f"{before}abc' https://host", len(before)).text == "abc"


def test_a_setting_says_how_the_text_writes_name_and_value() -> None:
    for before, name, environment in (
        ("export DB_PW=", "DB_PW", True),
        ("  api_key = ", "api_key", False),
        ('config["password"] = "', "password", False),
        ("user[password]=", "user[password]", False),
        ("--set auth.token=", "auth.token", False),
    ):
        text = before + "value next"

        setting = setting_before(text, read(text, len(before)))

        assert setting is not None
        assert setting.name == name
        assert setting.is_environment is environment


def test_an_index_is_no_setting() -> None:
    assert setting_before("rows[pw] = value", read("rows[pw] = value", 11)) is None


def test_a_view_leads_back_to_the_original() -> None:
    text = "ａ\u200bb\x1b[31mc\ud800d"

    view = plain(text)

    assert view.text == "abc\ufffdd"
    assert [text[slice(*view.origin(at, at + 1))] for at in range(5)] == ["ａ", "b", "c", "\ud800", "d"]
    assert text[slice(*view.origin(0, 3))] == "ａ\u200bb\x1b[31mc"


def test_a_decoded_view_of_a_view_leads_back_to_the_original() -> None:
    text = "x\u00ad%2541&#66;\\u0043"

    view = decoded(plain(text))

    assert view is not None
    assert view.text == "xABC"
    assert text[slice(*view.origin(1, 2))] == "%2541"
    assert text[slice(*view.origin(3, 4))] == "\\u0043"


def test_ascii_is_its_own_view_and_has_no_other() -> None:
    view = plain("plain text, 100% of it\n")

    assert view.starts is None
    assert decoded(view) is None
    assert joined(view) is None


@pytest.mark.parametrize(
    "form", ['{"a":"x","b":[1,2]}', '{"a": "x", "b": [1, 2]}', '{\n  "a": "x",\n  "b": [\n    1,\n    2\n  ]\n}', ' {"a":"x"} ']
)
def test_json_is_written_back_in_the_form_it_came_in(form: str) -> None:
    document = {"a": "x", "b": [1, 2]} if "b" in form else {"a": "x"}

    assert rewritten(form, document, {("a",): "y"}) == form.replace('"x"', '"y"')  # type: ignore[arg-type]


HELD = {
    "a Terraform output": '{{"db_password":{{"sensitive":true,"type":"string","value":"{0}"}}}}',
    "a typed attribute": '{{"password":{{"S":"{0}"}}}}',
    "a list": '{{"passwords":["{0}"]}}',
    "a Terraform variable": 'variable "db_password" {{\n  type    = string\n  default = "{0}"\n}}',
    "a property list": "<key>password</key>\n<string>{0}</string>",
    "CDATA": "<password><![CDATA[{0}]]></password>",
    "a pre-shared key": "network={{\n  psk={0}\n}}",
}


@pytest.mark.parametrize("name", HELD)
def test_a_secret_goes_whose_name_stands_a_step_away(redactor: Redactor, name: str) -> None:
    password = Fakes(61).password(14)

    redacted = redactor.redact_text(HELD[name].format(password), KEYS).text

    assert password not in redacted
    assert "[REDACTED:password:" in redacted


@pytest.mark.parametrize(
    "text",
    [
        '{"color":{"primary":{"value":"#ff0044"}},"tokens":{"spacing":{"value":"16px"}}}',
        '{"password_policy":{"value":"at least 12 characters"}}',
        'variable "token_count" {\n  default = "12"\n}',
        'variable "image" {\n  default = "nginx:1.27.3"\n}',
        "<key>CFBundleIdentifier</key>\n<string>org.example.App2</string>",
        "<title><![CDATA[Release 2.4.1 (beta)]]></title>",
    ],
)
def test_a_value_stays_whose_name_says_nothing_of_a_secret(redactor: Redactor, text: str) -> None:
    assert redactor.redact_text(text, KEYS).text == text
