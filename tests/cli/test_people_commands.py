"""Who may do what, from the command line: a story of one tenant, told by its operator."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.serving import Machine, served
from tests.folders import open_folder


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with open_folder() as folder, served(folder / "data"):
        yield Machine(folder / "data")


def test_principals_and_teams_come_and_go(machine: Machine) -> None:
    ada = machine.ok("principals", "create", "ada", "--issuer", "https://login.example/", "--subject", "ada")
    team = machine.ok("teams", "create", "night shift")

    machine.ok("teams", "join", team["team_id"], ada["principal_id"])
    changed = machine.ok("principals", "change", ada["principal_id"], "--role", "operator")

    assert (changed["role"], changed["subject"], changed["teams"]) == ("operator", "ada", [team["team_id"]])
    assert [m["principal_id"] for m in machine.ok("teams", "members", team["team_id"])] == [ada["principal_id"]]
    assert machine.ok("principals", "deactivate", ada["principal_id"])["status"] == "inactive"
    assert machine.ok("principals", "activate", ada["principal_id"])["status"] == "active"
    machine.ok("teams", "leave", team["team_id"], ada["principal_id"])
    assert machine.ok("teams", "list")[0]["members"] == 0
    machine.ok("teams", "delete", team["team_id"])
    assert machine.ok("teams", "list") == []
    listed = machine.here("principals", "list")
    assert listed.code == 0
    assert "ada" in listed.out


def test_an_operator_shares_and_erases_by_its_id_a_session_that_it_may_not_read(machine: Machine, tmp_path: Path) -> None:
    eve = machine.ok("principals", "create", "eve")
    key = machine.ok("keys", "create", "eve-laptop", "--principal", eve["principal_id"])["key"]
    file = tmp_path / "eves.json"
    lines = [f"on port {8000 + n} the standby answered in {n} ms, as it did before the move" for n in range(80)]
    file.write_text(json.dumps([{"role": "user", "content": "Look."}, {"role": "assistant", "content": "\n".join(lines)}]), "utf-8")
    assert machine.here("compact", str(file), COATCHECK_API_KEY=key).code == 0
    (session,) = machine.here("sessions", "list", "--json", COATCHECK_API_KEY=key).json

    unread = machine.here("sessions", "show", session["session_id"])
    shared = machine.ok("sessions", "visibility", session["session_id"], "personal")
    erased = machine.here("sessions", "delete", session["session_id"], "--yes")

    assert unread.code == 1
    assert (shared["visibility"], shared["owner_id"]) == ("personal", eve["principal_id"])
    assert (erased.code, erased.out.split(".")[0]) == (0, f"Erased {session['session_id']}")
    assert machine.here("sessions", "list", "--json", COATCHECK_API_KEY=key).json == []


def test_an_agents_credential_is_made_and_revoked(machine: Machine) -> None:
    made = machine.ok("delegations", "create", "agent", "--operation", "recall", "--door", "mcp", "--seconds", "60")

    assert made["credential"].startswith("cd_")
    assert (made["audience"], made["operations"]) == (["mcp"], ["recall"])
    machine.ok("delegations", "revoke", made["delegation_id"])
    (listed,) = machine.ok("delegations", "list")
    assert listed["revoked_at"] is not None
    assert machine.here("delegations", "create", "agent", "--operation", "keys").code == 1


def test_issuers_are_named_and_the_audit_tells_of_all_of_it(machine: Machine) -> None:
    named = ("https://sso.example/", "--keys", "https://sso.example/jwks", "--audience", "coatcheck")
    machine.ok("issuers", "create", *named)

    assert [one["audience"] for one in machine.ok("issuers", "list")] == ["coatcheck"]
    machine.ok("issuers", "delete", "https://sso.example/")
    inside = machine.here("issuers", "create", "https://in.example/", "--keys", "https://169.254.169.254/", "--audience", "a")
    assert inside.code == 1
    done = [record["action"] for record in machine.ok("audit", "--limit", "2")]
    assert done == ["issuer.delete", "issuer.create"]
    assert [record["action"] for record in machine.ok("audit", "--action", "issuer", "--since", "2026-01-01")] == done
    assert machine.ok("audit", "--since", "2100-01-01T00:00:00") == []
    newest = machine.here("audit").out.splitlines()[1]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  [0-9a-f-]{36} +issuer\.delete +issuer +https://sso\.example/", newest)


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        ("keys list", "key name principal state created expires sessions operations"),
        ("tenants list", "tenant name status created"),
        ("sessions list", "session name visibility manifests segments created"),
        ("principals list", "principal name role status subject teams"),
        ("teams list", "team name members"),
        ("issuers list", "issuer tenant keys audience"),
        ("delegations list", "delegation name depth until operations"),
        ("audit", "at principal delegation action kind target"),
        ("sessions retention", "sessions kept for"),
        ("models status", "stage state detail"),
        ("doctor", "check state detail"),
    ],
)
def test_every_list_begins_with_its_header_where_no_terminal_is(machine: Machine, command: str, columns: str) -> None:
    listed = machine.here(*command.split())

    assert listed.out.splitlines()[0].split() == columns.split()
