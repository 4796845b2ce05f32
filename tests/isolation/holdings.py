"""One of everything that an operation can name, in one person's hands, with a canary wherever words go."""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.api.operations import Ids
from tests.contract.working import followed
from tests.isolation import secret
from tests.isolation.town import Person, left_by

JOBS = {"scan": "scan", "repair": "repair", "reconcile": "reconcile", "rescan": "redact-rescan"}
"""The names of ``Ids`` for jobs, and the kinds of job that they are."""


async def holdings_of(person: Person, mark: str) -> Ids:
    """For who may do everything: it has keys, jobs and a tenant. ``mark`` stands in every text.

    What a new operation names is made here, and gets its name in ``Ids``.
    """
    left = await left_by(person, mark)
    key = await person.http.post("/v1/admin/keys", json={"name": mark, "operations": ["read"]})
    assert key.status_code == 201, key.text
    tenant = await person.http.post("/v1/admin/tenants", json={"name": f"{mark} {secret.word(8)}"})
    assert tenant.status_code == 201, tenant.text
    team = await _made(person, "teams", name=mark)
    principal = await _made(person, "principals", name=mark)
    await _made(person, "memberships", team_id=team["team_id"], principal_id=principal["principal_id"])
    asked = {"name": mark, "audience": ["api"], "operations": ["read"]}
    delegation = await person.http.post("/v1/delegations", json=asked)
    assert delegation.status_code == 201, delegation.text
    issuer = f"https://{mark}.example/{uuid4()}"
    await _made(person, "issuers", issuer=issuer, jwks_uri="https://keys.example/jwks", audience="coatcheck")
    jobs = {}
    for name, kind in JOBS.items():
        started = await person.http.post(f"/v1/admin/{kind}")
        jobs[name] = (await followed(person.http, started.headers["location"]))["job_id"]
    gone = await left_by(person, f"{mark} gone")
    erased = await person.http.delete(f"/v1/sessions/{gone.session}?receipt=true")
    assert erased.status_code == 200, erased.text
    return Ids(
        session=left.session,
        manifest=left.manifest,
        sha256=left.sha256,
        key=key.json()["key_id"],
        tenant=tenant.json()["tenant_id"],
        erasure=erased.json()["erasure_id"],
        team=UUID(team["team_id"]),
        issuer=issuer,
        delegation=UUID(delegation.json()["delegation_id"]),
        principal=UUID(principal["principal_id"]),
        **jobs,
    )


async def _made(person: Person, kind: str, **asked: str) -> dict[str, str]:
    answer = await person.http.post(f"/v1/admin/{kind}", json=asked)
    assert answer.status_code == 201, answer.text
    body: dict[str, str] = answer.json()
    return body
