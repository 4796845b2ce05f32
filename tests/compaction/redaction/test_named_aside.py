"""Secrets that no name and sign stand before: words of commands, addresses, fields whose name follows, ids of sessions."""

from __future__ import annotations

import hashlib
import uuid

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import HEX, KEYS, Fakes

FAKES = Fakes(111)
PASSWORD, OPAQUE = FAKES.password(14), FAKES.opaque(40)
LOWER, UPPER_HEX = FAKES.opaque(26, "abcdefghijklmnopqrstuvwxyz0123456789"), FAKES.opaque(32, HEX).upper()
COMMANDS = [
    f"htpasswd -b /etc/nginx/.htpasswd bob {PASSWORD}",
    f"$ htpasswd -bBc users.txt bob '{PASSWORD}' && nginx -s reload",
    f"docker run httpd htpasswd -nb bob {PASSWORD} > auth/htpasswd",
    "htpasswd -nbB admin swordfish",
    f"ssh-keygen -t ed25519 -N '{PASSWORD}' -f ~/.ssh/id",
    f'ssh-keygen -p -P {PASSWORD} -N "" -f key',
    f"mysql -uroot -p{PASSWORD} app",
    f"mysqladmin -u root password {PASSWORD}",
    f"curl -u 'bob:{PASSWORD}' https://host.example",
    f"wget --user bob --password {PASSWORD} https://host.example/x",
    f"sshpass -p{PASSWORD} ssh host",
    f"docker login -u bob -p {PASSWORD} registry.example",
    f"openssl rsa -in k.pem -passin pass:{PASSWORD}",
    f"openssl pkcs12 -export -passout=pass:{PASSWORD} -out x.p12",
    f"openssl enc -aes-256-cbc -k {PASSWORD} -in a -out b",
    f"openssl passwd -6 {PASSWORD}",
    f"redis-cli -h cache -a {PASSWORD} ping",
    f"redis-cli --pass {PASSWORD} ping",
    f"psql postgres://app:{PASSWORD}@db/app -c 'select 1'",
    f"smbclient //srv/share -U bob%{PASSWORD}",
    f"lftp -u bob,{PASSWORD} ftp.example",
    f"rabbitmqctl add_user bob {PASSWORD}",
    f"rabbitmqctl -n rabbit@h change_password bob '{PASSWORD}'",
    f"wpa_passphrase HomeNet {PASSWORD}",
    f"net user bob {PASSWORD} /add",
    f"NET USER bob {PASSWORD} /domain",
    f"vault login {OPAQUE}",
    f"vault login -no-print {OPAQUE}",
    f"bw login bob@host.example {PASSWORD}",
    f"bw unlock '{PASSWORD}' --raw",
    f"ipmitool -I lanplus -H 10.0.0.1 -U root -P {PASSWORD} power status",
    f"mosquitto_pub -u bob -P {PASSWORD} -t x -m y",
    f"xfreerdp /v:host /u:bob /p:{PASSWORD}",
    f"psexec \\\\host -u bob -p {PASSWORD} cmd",
    f"snmpwalk -v3 -u bob -A {PASSWORD} host",
    f"$c = ConvertTo-SecureString '{PASSWORD}' -AsPlainText -Force",
    f"sudo -S ls <<< '{PASSWORD}'",
    f"gh auth login --with-token <<< {OPAQUE}",
    f'expect "Password:"\nsend "{PASSWORD}\\r"',
    f"npm config set //r.example/:_authToken {OPAQUE}",
    f"h.example\tFALSE\t/\tTRUE\t0\tsid\t{OPAQUE}",
    f'{{"command": "htpasswd -b f bob {PASSWORD}"}}',
    f"sqlplus scott/{PASSWORD}@orcl @x.sql",
    f"SQL> connect scott/{PASSWORD}@//db:1521/orcl",
    f"rman target sys/{PASSWORD}@prod",
    f"exp userid=scott/{PASSWORD}@orcl file=x.dmp",
    f"url=jdbc:oracle:thin:scott/{PASSWORD}@//db.example:1521/svc",
    f"jdbc:oracle:thin:scott/{PASSWORD}@db.example:1521:SID",
    f"CREATE USER app IDENTIFIED BY {PASSWORD};",
    "ALTER USER scott IDENTIFIED BY tiger ACCOUNT UNLOCK;",
    f"env:\n  - value: {PASSWORD}\n    name: DB_PASSWORD\n  - value: x\n    name: MODE\n",
    f'env:\n  - value: "{PASSWORD}"\n    name: DB_PASSWORD',
    f'[ {{"value": "{PASSWORD}", "name": "DB_PASSWORD"}}',
    f'<add value="{PASSWORD}" key="DbPassword"/>',
    f'<input type="password" name="p" value="{PASSWORD}">',
    f'<input value="{PASSWORD}" id="p" type="password"/>',
]
SESSIONS = [
    f"sessionid={LOWER}",
    f"GET /app;jsessionid={UPPER_HEX}?x=1",
    f"JSESSIONID={UPPER_HEX}.node1; Path=/",
    f"JSESSIONID: {UPPER_HEX}",
    f"PHPSESSID={LOWER}",
    f"document.cookie = 'PHPSESSID={LOWER}'",
    f"ASP.NET_SessionId={LOWER[:24]}",
    f"ASPSESSIONIDQQRSTUVW={FAKES.opaque(24, 'abcdefghijklmnop').upper()}",
    f"login ok sessionid={FAKES.hexadecimal(32)} user=bob",
]


@pytest.mark.parametrize("text", COMMANDS)
def test_a_secret_goes_that_its_place_alone_tells(redactor: Redactor, text: str) -> None:
    redacted = redactor.redact_text(text, KEYS)

    assert [one for one in (PASSWORD, OPAQUE, "swordfish", "tiger") if one in redacted.text] == []
    assert sum(redacted.counts.values()) == 1
    assert redactor.redact_text(redacted.text, KEYS).text == redacted.text


@pytest.mark.parametrize("text", SESSIONS)
def test_an_id_that_logs_in_goes(redactor: Redactor, text: str) -> None:
    redacted = redactor.redact_text(text, KEYS)

    assert sum(redacted.counts.values()) == 1
    assert redactor.redact_text(redacted.text, KEYS).text == redacted.text
    assert len(redacted.text) - redacted.text.count("[REDACTED:") <= len(text) + 30


SHA, UUID = hashlib.sha256(b"x").hexdigest(), str(uuid.UUID(int=2**127 + 12345))
PLAIN = [
    "htpasswd -c /etc/nginx/.htpasswd bob",
    "htpasswd -b FILE USER PASSWORD",
    "htpasswd -b file $USER $PASSWORD",
    "usage: htpasswd [-cimBdpsDv] [-C cost] passwordfile username",
    "ssh-keygen -t ed25519 -N '' -f ~/.ssh/id_ed25519",
    "ssh-keygen -R host.example -f ~/.ssh/known_hosts",
    "mysql -u root -p app < dump.sql",
    "mysqladmin -u root password",
    "docker login -u bob --password-stdin registry.example",
    "docker run -p 8080:80 -u 1000 login-service:2.1",
    "openssl rsa -in key.pem -passin env:KEY_PASS -passin file:/run/secrets/p",
    "openssl passwd -6",
    "openssl passwd -6 -salt",
    "redis-cli -h cache -p 6379 ping",
    "psql -h db -U app -p 5432 -d app",
    "rabbitmqctl add_user $USER $PASSWORD",
    "rabbitmqctl list_users",
    "net user /domain",
    "the net user experience matters2 a lot",
    "vault login -method=oidc role=dev",
    "vault login",
    "bw login bob@host.example",
    "smbclient //srv/share -U bob -c 'ls'",
    "connect scott/tiger",
    "connect api/v2 to the other service@host",
    "sqlplus / as sysdba",
    "jdbc:oracle:thin:@//db.example:1521/svc",
    "jdbc:oracle:thin:scott/${PW}@db:1521:SID",
    "the column is identified by name and the user is identified by id",
    "CREATE USER app IDENTIFIED EXTERNALLY;",
    "ALTER USER app IDENTIFIED BY VALUES",
    "env:\n  - name: MODE\n    value: fast-v2\n  - name: DB_PASSWORD\n    valueFrom: x\n",
    "- name: MODE\n  value: blue-green-2\n- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: db\n",
    'name: a2, value: b3c4d5, name: DB_PASSWORD, value: ${PW}',
    '<input type="password" name="password" id="password" value="">',
    '<input type="text" name="city" value="Berlin10115">',
    '<input type="checkbox" name="remember" value="1yes2">',
    f"session_id={SHA[:32]}",
    f"session {UUID} started, sessionid={UUID}",
    f"sessionId: {UUID}",
    f"session: {SHA}",
    "JSESSIONID cookies are set by the container; PHPSESSID by PHP",
    "session.cookie.name=JSESSIONID\nsession_timeout=3600",
    'if "PHPSESSID" in cookies: sessionid = request.cookies["PHPSESSID"]',
    "sessionid = get_session_id(request)",
    "zip -r out.zip src && unzip -P",
    "ipmitool -I lanplus -H 10.0.0.1 -U root -E power status",
    "wpa_passphrase HomeNet",
    "snmpwalk -v2c -c public host",
    "sudo -S ls < /dev/null; cat <<< 'hello2you'",
    'expect "Password:"\nsend "$password\\r"',
    "npm config set registry https://r.example/ && npm config set token-count 12",
    "h.example\tFALSE\t/\tTRUE\t0\ttheme\tdark",
    "the bearer\n  of this letter2 is known",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_looks_like_such_a_place_stays(redactor: Redactor, text: str) -> None:
    assert redactor.redact_text(text, KEYS).text == text
