"""What looks like a secret and is none: hashes, identifiers, placeholders, code, and words about secrets."""

from __future__ import annotations

import base64
import hashlib
import random
import uuid

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, Fakes

CODE = """\
def login(self, username: str, password: str) -> Token:
def __init__(self, token: Optional[str] = None, secret: str = "", api_key: str | None = None):
self.token = token
password = getpass.getpass("Password: ")
token = request.headers.get("Authorization")
api_key = os.environ.get("OPENAI_API_KEY", "")
const token = await getToken(req);
password: z.string().min(8),
password: { type: String, required: true },
password: string;
interface Credentials { username: string; password: string; }
key = lambda item: item.name
cache_key = f"user:{user_id}:profile"
sort_key: created_at
rows[pw] = char2
pw = pw[:-1]
ssh_key_path = "~/.ssh/id_ed25519"
headers["Authorization"] = f"Bearer {self.token}"
headers: { Authorization: `Bearer ${token}` }
connect(user=user, password=pw1, host=h)
conn = connect(\n    user=user,\n    password=db_password\n)
password=settings.DB_PASSWORD
if password != confirm_password:
elif token == 'RETURN':
{"type": "password", "label": "Password"}
<input type="password" name="password" id="password">
"password": "Your password must be at least 8 characters",
errors.password = "Passwords do not match"
i18n.t('auth.password.reset')
auth=(user, passwd)
jwt.decode(token, key, algorithms=["HS256"])
password_hash = bcrypt.hashpw(password.encode(), bcrypt.gensalt())
challenge = {"AttributeOID.CHALLENGE_PASSWORD": "challengePassword"}
"AWS::IAM::AccessKey": "72c2d9dd90025459"
git push -u origin main
docker run -u 1000:1000 -v /a:/b -p 80:80 image
mysql -u root -p mydb < dump.sql
secretName: my-app-tls-certificate
secret: my-app-secret
max_tokens: 8192
eos_token="</s>", pad_token="<pad>"
test_password_reset_token_is_single_use PASSED
class PasswordResetTokenGenerator(BaseTokenGeneratorMixin):"""
PLACEHOLDERS = """\
API_KEY=your-api-key-here
OPENAI_API_KEY=sk-...
GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
export TOKEN=$GITHUB_TOKEN
password: ${DB_PASSWORD}
PASSWORD=$(cat /run/secrets/db)
PASSWORD_FILE=/run/secrets/db_password
token: {{ secrets.GITHUB_TOKEN }}
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
postgres://user:password@localhost/db
postgres://${DB_USER}:${DB_PASS}@${DB_HOST}/db
f"postgresql://{user}:{password}@{host}:{port}/{name}"
curl -u $USER:$PASS https://host.example
echo "$PASSWORD" | docker login --password-stdin
SECRET_KEY=changeme
POSTGRES_PASSWORD=postgres
password=********
--password <PASSWORD>
USER_PASS = "%s:%s"
secret: [REDACTED]
token: [REDACTED:github-pat:ab12cd34]"""
PROSE = """\
The password is incorrect.
password is required for this action
Your token has expired, and the password has been changed twice.
the secret to good code is naming
The key is to keep it simple, and the key takeaway is 2 things.
Error: invalid token: unexpected end of input
Unexpected token } in JSON at position 42
The token limit is 200k and the context window is 1M
the algorithm for the token is RS256, the hash is SHA-256
use --password to pass the password
username and password entries are read from the file
Set the password to continue, then pass force_zip64=True
Bearer token authentication is used here
Пароль неверный, попробуйте ещё раз
пароль должен содержать не менее 8 символов
ключевой момент: 2 варианта решения
密码错误，请重试
密码长度不能少于8位
令牌数量：4096
パスワードを入力してください
La contraseña es incorrecta
Das Passwort ist falsch"""


@pytest.mark.parametrize("line", [*CODE.splitlines(), *PLACEHOLDERS.splitlines(), *PROSE.splitlines()])
def test_words_about_secrets_are_no_secrets(redactor: Redactor, line: str) -> None:
    text = line.replace("\\n", "\n")

    redacted = redactor.redact_text(text, KEYS)

    assert redacted.text == text
    assert not redacted.counts


def test_twenty_thousand_hashes_and_uuids_stay(redactor: Redactor) -> None:
    rng = random.Random(5)
    forms = (
        "commit {}", "tree {}", "req={} status=200", '"id": "{}",', "{}  dist/x.tar.gz", "etag: {}", "image@sha256:{}",
        "key {}", "session {} started", "digest={}", "cache key {}", "rev: {}", "object_key={}", "token_sha256={}",
        "auth: fix token ({})", "{}",
    )  # fmt: skip
    text = "\n".join(rng.choice(forms).format(_identifier(rng)) for _ in range(20_000))

    redacted = redactor.redact_text(text, KEYS)

    assert redacted.text == text


def test_a_hash_beside_a_vendors_name_stays(redactor: Redactor) -> None:
    vendors = (
        "adafruit", "algolia", "bitly", "box", "circleci", "cloudflare", "deepgram", "discord", "dropbox", "facebook", "flickr",
        "gitter", "heroku", "meraki", "npm", "xai",
    )  # fmt: skip
    forms = (
        "{v}: {h}",
        "{v}_commit={h}",
        "{v} etag = {h}",
        '"{v}_id": "{h}"',
        "{v}-{h}.tar.gz",
        "fix {v} auth token refresh ({h})",
    )
    rng = random.Random(7)
    lines = [form.format(v=vendor, h=_identifier(rng)) for vendor in vendors for form in forms]

    unchanged = [line for line in lines if redactor.redact_text(line, KEYS).text == line]

    assert unchanged == lines


def test_ordinary_base64_and_public_keys_stay(redactor: Redactor) -> None:
    fakes = Fakes(2)
    encoded = base64.b64encode(random.Random(2).randbytes(3_000)).decode()
    certificate, _ = fakes.pem("CERTIFICATE")
    public, _ = fakes.pem("PUBLIC KEY")
    text = (
        f"data:image/png;base64,{encoded}\npayload: {encoded[:120]}\n{certificate}\n{public}\nssh-ed25519 {encoded[:68]} bob@host"
    )

    assert redactor.redact_text(text, KEYS).text == text


def test_a_line_after_a_secret_stays_when_it_is_none_of_it(redactor: Redactor) -> None:
    fakes = Fakes(3)
    for following in (fakes.hexadecimal(40), "PORT8080=1", "x86_64", "done", f"commit {fakes.hexadecimal(40)}"):
        text = f"export VERY_LONG_NAME_OF_A_TOKEN={fakes.opaque(30)}\n{following}\n"

        redacted = redactor.redact_text(text, KEYS).text

        assert redacted.startswith("export VERY_LONG_NAME_OF_A_TOKEN=[REDACTED:token:")
        assert redacted.endswith(f"]\n{following}\n")


def test_a_mark_of_a_private_key_that_code_only_mentions_stays(redactor: Redactor) -> None:
    dashes = "-" * 5
    text = f'if "{dashes}BEGIN PRIVATE KEY{dashes}" in text and "{dashes}END PRIVATE KEY{dashes}" in text:\n    return True'

    assert redactor.redact_text(text, KEYS).text == text


def _identifier(rng: random.Random) -> str:
    raw = rng.randbytes(16)
    algorithm = rng.choice(("sha1", "md5", "sha256", "uuid"))
    return str(uuid.UUID(bytes=raw)) if algorithm == "uuid" else hashlib.new(algorithm, raw).hexdigest()
