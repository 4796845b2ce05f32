"""The kinds of secrets, each in the forms in which transcripts hold them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import HEX, KEYS, Fakes, left_of

Case = Callable[[Fakes], tuple[str, str]]
"""A text and the secret in it, made of one seed's fakes."""


def _case(template: str, make: Callable[[Fakes], str]) -> Case:
    def build(fakes: Fakes) -> tuple[str, str]:
        secret = make(fakes)
        return template.replace("§", secret), secret

    return build


def _opaque(length: int) -> Callable[[Fakes], str]:
    return lambda fakes: fakes.opaque(length)


def _hex(length: int) -> Callable[[Fakes], str]:
    return lambda fakes: fakes.hexadecimal(length)


def _word(word: str) -> Callable[[Fakes], str]:
    return lambda _: word


def _basic(fakes: Fakes) -> str:
    return base64.b64encode(f"bob:{fakes.opaque(16)}".encode()).decode()


def _ours(fakes: Fakes, prefix: str) -> str:
    return f"{prefix}_{fakes.hexadecimal(32)}_{fakes.hexadecimal(32)}_{fakes.opaque(43)}"


TOKENS = {
    "github in prose": _case("my key §, use it", Fakes.github),
    "github without a boundary": _case("prefix_§_suffix", Fakes.github),
    "anthropic in a log": _case("401 creds=`§` attempt=3", Fakes.anthropic),
    "slack in yaml": _case('slack:\n  bot: "§"\n', Fakes.slack),
    "aws id": _case("id §.", Fakes.aws_id),
    "jwt": _case("cookie jar: §\n", Fakes.jwt),
    "telegram in a path": _case("/bot§/getMe", lambda f: f.opaque(10, "123456789") + ":" + f.opaque(35)),
    "vault": _case("§", lambda f: "hv" + "s." + f.opaque(60)),
    "our own key in prose": _case("it printed § and went on", lambda f: _ours(f, "ck")),
    "our own delegation in a shell": _case("export AGENT=§", lambda f: _ours(f, "cd")),
    "a repeating fake": _case("fw" + "_" + "§", lambda _: "B" * 24),
}
URLS = {
    "url userinfo": _case("postgres://app:§@db:5432/app", Fakes.password),
    "url with an at sign in the password": _case("amqp://u:§@mq/vh", lambda f: f.opaque(6) + "@" + f.opaque(6)),
    "url token as user": _case("https://§@host.example/x.git", _opaque(32)),
    "url parameter": _case("https://host.example/list?page=2&api_key=§&sort=asc", _opaque(18)),
    "url signature": _case("https://s3.example/k?X-Amz-Signature=§", _hex(64)),
    "url fragment": _case("https://app.example/#access_token=§&type=x", _opaque(32)),
    "jdbc": _case("jdbc:postgresql://db/app?user=bob&password=§&ssl=true", Fakes.password),
    "connection string": _case("Server=db;User Id=sa;Password=§;Encrypt=True;", Fakes.password),
    "connection string with a word": _case("Server=db;User Id=sa;Password=§;Encrypt=True;", _word("swordfish")),
    "libpq": _case("host=db user=app password=§ dbname=app", _word("hunter2")),
    "form body": _case("username=bob&password=§&remember=1", _word("mysecret")),
}
HEADERS = {
    "bearer": _case("> Authorization: Bearer §\n> Accept: */*", _opaque(40)),
    "bearer hex": _case('{"Authorization": "Bearer §"}', _hex(32)),
    "basic": _case("curl -H 'authorization: basic §' http://localhost", _basic),
    "token scheme": _case("Authorization: token §", _hex(26)),
    "no scheme": _case("authorization: §", _opaque(40)),
    "api key header": _case("x-api-key: §\naccept: */*", _opaque(32)),
    "private token": _case("PRIVATE-TOKEN: §", _opaque(20)),
    "cookie": _case("Cookie: theme=dark; sid=§; lang=en", _opaque(32)),
    "set-cookie": _case("Set-Cookie: connect.sid=§; Path=/; HttpOnly", _hex(64)),
    "cookie flag": _case("curl -b 'session=§' https://host.example", _opaque(32)),
}
ASSIGNMENTS = {
    "env password": _case("DB_USER=app\nDB_PASSWORD=§\nDB_HOST=db", Fakes.password),
    "env word": _case("SECRET_TOKEN=§", _word("mypassword")),
    "env short": _case("DB_PW=§\n", _word("jkl012")),
    "env bare key": _case("FAL_KEY=§\n", _opaque(12)),
    "lower-case bare key": _case("openai_key=§", _opaque(32)),
    "env parentheses": _case("DB_PASSWORD=§\n", lambda f: f.opaque(4) + "(" + f.opaque(3) + ")9" + f.opaque(2)),
    "yaml": _case("database:\n  user: app\n  password: §\n", Fakes.password),
    "yaml word": _case("database:\n  password: §\n", _word("swordfish")),
    "yaml block": _case("client_secret: |\n  §\n", _opaque(40)),
    "json": _case('{"user": "bob", "password": "§"}', Fakes.password),
    "json escaped twice": _case(json.dumps(json.dumps({"password": "§"})), Fakes.password),
    "quote inside": _case('PASSWORD="§"', lambda f: f.opaque(8) + '\\"' + f.opaque(8)),
    "ini": _case("[client]\nuser = root\npassword = §\n", _word("swordfish")),
    "python call": _case('connect(host="db", password="§")', Fakes.password),
    "python type": _case('token: str = "§"', _opaque(24)),
    "python environ": _case('os.environ.setdefault("DJANGO_SECRET_KEY", "§")', _opaque(40)),
    "php define": _case("define('DB_PASSWORD', '§');", Fakes.password),
    "go": _case('apiKey := "§"', _opaque(32)),
    "ruby": _case("'client_secret' => '§',", _opaque(32)),
    "rust": _case('let token: &str = "§";', _opaque(32)),
    "xml element": _case("<password>§</password>", Fakes.password),
    "xml attributes": _case('<add key="DbPassword" value="§"/>', Fakes.password),
    "name and value": _case("env:\n  - name: API_TOKEN\n    value: §\n", _opaque(24)),
    "hex under a secret's name": _case("DD_API_KEY=§", _hex(32)),
    "uuid under a token's name": _case("//npm.example/:_authToken=§", Fakes.uuid),
    "dockerfile": _case("ENV API_TOKEN §", _opaque(24)),
    "redis": _case("requirepass §", Fakes.password),
    "sql": _case("CREATE USER app IDENTIFIED BY '§';", Fakes.password),
    "netrc": _case("machine host.example\n  login bob\n  password §\n", _word("swordfish")),
    "pgpass": _case("db.example:5432:app:bob:§\n", Fakes.password),
    "docker config": _case('{"auths": {"ghcr.example": {"auth": "§"}}}', _basic),
}
COMMANDS = {
    "long flag": _case("$ tool login --user bob --password § --host x", Fakes.password),
    "long flag with a sign": _case("deploy --token=§ --prod", _opaque(28)),
    "flag in a list": _case('["--token","§"]', _opaque(28)),
    "mysql": _case("mysql -u root -p§ app < dump.sql", Fakes.password),
    "sshpass": _case("sshpass -p '§' ssh root@host uptime", Fakes.password),
    "docker login": _case("docker login -u bob -p § ghcr.example", Fakes.password),
    "curl user": _case("curl -u admin:§ https://host.example", _opaque(20)),
    "variable before a command": _case("PGPASSWORD=§ psql -h db", Fakes.password),
    "literal of a cluster secret": _case("kubectl create secret generic x --from-literal=password=§ -n a", _word("hunter2")),
    "piped": _case("echo § | sudo -S apt update", Fakes.password),
    "set value": _case("helm upgrade x --set auth.password=§ --wait", _word("hunter2")),
}
PROSE = {
    "is": _case("The admin password is § and the user is root.", Fakes.password),
    "for": _case("password for staging: §", Fakes.password),
    "api key": _case("My API key is §. Keep it.", _opaque(24)),
    "token": _case("use this token: §", _opaque(16)),
    "client secret": _case("client secret is §", _hex(40)),
    "passphrase": _case("the vault passphrase: §", _word("correct-horse-battery-staple")),
    "quoted word": _case('the password is "§"', _word("swordfish")),
    "reversed": _case("§ is the admin password", Fakes.password),
    "changed": _case("I set the password to § yesterday", Fakes.password),
    "credentials": _case("creds: admin / §", Fakes.password),
    "russian": _case("Пароль от базы: §", Fakes.password),
    "russian without a sign": _case("мой пароль §", Fakes.password),
    "russian token": _case("токен — §", _opaque(24)),
    "chinese": _case("数据库密码是§，请保密", Fakes.password),
    "chinese full-width colon": _case("密码：§", Fakes.password),
    "japanese": _case("パスワードは§です", Fakes.password),
    "korean": _case("비밀번호: §", Fakes.password),
    "spanish": _case("La contraseña es §", Fakes.password),
    "french": _case("mot de passe : §", Fakes.password),
    "german": _case("Das Passwort lautet §", Fakes.password),
    "seed phrase": _case("seed phrase: §", lambda f: " ".join(f.opaque(5, "bcdfghjkmn") for _ in range(12))),
}
ALL = {f"{group}: {name}": case for group, cases in (
    ("token", TOKENS), ("url", URLS), ("header", HEADERS), ("assignment", ASSIGNMENTS), ("command", COMMANDS), ("prose", PROSE)
) for name, case in cases.items()}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_a_secret_of_every_kind_goes_and_what_stands_around_it_stays(redactor: Redactor, name: str) -> None:
    for seed in range(4):
        text, secret = ALL[name](Fakes(seed))

        redacted = redactor.redact_text(text, KEYS).text

        before, _, after = text.partition(secret)
        assert left_of(secret, redacted) < min(6, len(secret))
        assert redacted.startswith(before[: max(0, len(before) - 40)])
        assert redacted.endswith(after[40:])
        assert redactor.redact_text(redacted, KEYS).text == redacted


def test_a_password_that_is_only_known_by_its_key_goes_whole(redactor: Redactor) -> None:
    redacted = redactor.redact_text("correct horse battery", KEYS, key_name="passphrase")

    assert redacted.text.startswith("[REDACTED:password:")
    assert redacted.counts == {"password": 1}


def test_a_private_json_web_key_loses_its_private_part_alone(redactor: Redactor) -> None:
    fakes = Fakes(3)
    private, public = fakes.opaque(43), fakes.opaque(43)
    key = {"kty": "OKP", "crv": "Ed25519", "x": public, "d": private}

    redacted = redactor.redact_text(json.dumps(key), KEYS).text

    assert private not in redacted
    assert public in redacted


def test_a_hex_value_is_a_secret_or_a_hash_by_its_name(redactor: Redactor) -> None:
    value = Fakes(1).opaque(40, HEX)

    as_secret = redactor.redact_text(f"encryption_key: {value}", KEYS).text
    as_hash = redactor.redact_text(f"cache_key: {value}", KEYS).text

    assert value not in as_secret
    assert value in as_hash
