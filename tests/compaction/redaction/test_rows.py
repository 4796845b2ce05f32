"""Columns that are named once: SQL's INSERT and COPY, CSV and its kin, columns that spaces align."""

from __future__ import annotations

import pytest

from coatcheck.compaction.redaction import Redactor
from tests.compaction.redaction.fakes import KEYS, Fakes

A, B = Fakes(101).password(14), Fakes(102).password(14)
ROWS = {
    "an INSERT": f"INSERT INTO users (id, name, password) VALUES (1, 'bob', '{A}'), (2, 'eve', '{B}');",
    "INSERT, lines": f'insert into "a"."users"\n("name", "password")\nvalues\n  (\'bob\', \'{A}\'),\n  (\'eve\', \'{B}\')\n',
    "an INSERT of words": "INSERT INTO t (user, password) VALUES ('bob', 'swordfish')",
    "INSERT and calls": f"INSERT INTO u (n, pwd, at) VALUES ('b', crypt('{A}', gen_salt('bf')), now()), ('e', MD5('{B}'), now())",
    "an INSERT with an apostrophe": f"INSERT INTO u (n, pwd) VALUES ('O''Brien, (x)', '{A}'), ('it''s', '{B}')",
    "an INSERT in MySQL's dump": f"INSERT INTO `u` (`id`,`api_key`,`ok`) VALUES (1,'{A}',NULL),(2,'{B}',1);",
    "a REPLACE with double quotes": f'REPLACE INTO u (n, secret) VALUES ("b", "{A}"), ("e", "{B}")',
    "an INSERT inside of a string": f"cur.execute(\"INSERT INTO users (name, password) VALUES ('bob', '{A}'), ('eve', '{B}')\")",
    "an INSERT in JSON": f'{{"sql": "INSERT INTO users (\\"name\\", \\"password\\") VALUES (\'bob\', \'{A}\'), (\'e\', \'{B}\')"}}',
    "an INSERT of a SELECT": f"INSERT INTO u (name, password) SELECT 'bob', '{A}'; INSERT INTO u (password) SELECT '{B}'",
    "a COPY": f"COPY public.users (id, email, password) FROM stdin;\n1\ta@b.example\t{A}\n2\tc@d.example\t{B}\n\\.\n",
    "a file of accounts": f"# user\tpassword\nbob\t{A}\neve\t{B}\n",
    "CSV": f"id,name,password\n1,bob,{A}\n2,eve,{B}\n",
    "CSV in quotes": f'"name","API token","note"\n"bob","{A}","a, b"\n"eve","{B}",""\n',
    "CSV of a browser": f"name,url,username,password\nx,https://a.example/,bob,{A}\ny,https://b.example/,eve,{B}\n",
    "CSV with the secret first": f"password;user\n{A};bob\n{B};eve",
    "CSV after a line of prose": f"here is the export:\nuser, password, host\nbob, {A}, h1\neve, {B}, h2\nend of it\n",
    "tabs": f"name\taccess_key\tnote\nbob\t{A}\tx\neve\t{B}\ty\n",
    "CSV with Windows line ends": f"user,passwd\r\nbob,{A}\r\neve,{B}\r\n",
    "aligned columns": f"\nUSER   PASSWORD         HOST\nbob    {A}   h1\neve    {B}   h2\n",
    "aligned columns of a cluster's tool": f"$ tool list\nTOKEN                     TTL\n{A}            23h\n{B}            1h\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_value_goes_whose_column_names_a_secret(redactor: Redactor, name: str) -> None:
    redacted = redactor.redact_text(ROWS[name], KEYS)

    assert [one for one in (A, B, "swordfish") if one in redacted.text] == []
    assert sum(redacted.counts.values()) == ROWS[name].count(A) + ROWS[name].count(B) + ROWS[name].count("swordfish")
    assert redactor.redact_text(redacted.text, KEYS).text == redacted.text


PLAIN = [
    "INSERT INTO users (name, password) VALUES (?, ?), ($1, $2), (:name, :password), (%s, %s)",
    "INSERT INTO users (name, password_hash) VALUES ('bob', 'see below')",
    "INSERT INTO stats (model, tokens, cost) VALUES ('small2', '128000', 0.15), ('large4', '200k', 3)",
    "INSERT INTO t (id, token_count) VALUES (1, 48213)",
    "INSERT INTO t (user, password) VALUES ('bob', NULL), ('eve', DEFAULT), ('x', md5(random()::text))",
    "INSERT INTO t (user, password) SELECT name, secret2 FROM old_users",
    "INSERT INTO t (user, password) SELECT * FROM old; INSERT INTO t (n, secret) SELECT name, v2 FROM x",
    "INSERT INTO t (user, password) VALUES ('bob', '${DB_PASSWORD}'), ('eve', '********')",
    "model,tokens,cost\nsmall,128000,0.15\nlarge,200k,3.00\n",
    "text,token,label\nfoo,bar,1\nbaz,qux,0\n",
    "id,password_changed_at,name\n1,2026-11-29T20:15:00Z,bob2\n",
    "user,password\nbob,********\neve,<redacted>\n",
    "word, token, secret\nand the next line has 2 parts, too\nx1y2z3\n",
    "from auth import login, token\nfrom api2 import thing3, other4\n",
    "def f(user,\n      password, token\n      ):\n    return x1, y2\n",
    "NAME                 TYPE                TOKEN   AGE\ndb-credentials       Opaque              3       42d\n",
    "NAMESPACE   SECRET\ndefault     db-credentials\nkube-system bootstrap-v2\n",
    "TOKENS  COST\n128000  0.15\n200k    3.00\n",
    "feature,secret\nlogin-page-v2,false\nsearch-api-v3,true\n",
    "password,strength\nmust hold 1 digit,weak\n",
    "token,pos,lemma\nrunning,VERB,run\nU.S.,PROPN,u.s.\n",
]


@pytest.mark.parametrize("text", PLAIN)
def test_other_rows_stay(redactor: Redactor, text: str) -> None:
    assert redactor.redact_text(text, KEYS).text == text
