"""Threats to filters: values and keys that would widen one, on the real index and over the routes (docs/threats.md)."""

from __future__ import annotations

import json
import string
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coatcheck.domain.passages import RecallFilter
from coatcheck.domain.scopes import Scope, TenantScope, principal_key
from coatcheck.index import filters
from coatcheck.index.lexical import analyse_query
from coatcheck_client.wire import RecallRequest
from tests.api.operations import Ids
from tests.isolation.town import Town, left_by

EVIL = (
    "' OR 1=1 --", '"; DROP TABLE sessions; --', "*", "%", "_", "$ne", '{"$gt": ""}', "]}, {should: []}", "tenant_id", "public",
    "\x00", "\u200b", "\u202e", "../..", "NULL", "[]", "{}", "p:*", "app.tenant_id", "\ud800", "\\", "{{7*7}}", "%00", "\r\nX: y",
)  # fmt: skip
"""What has widened somebody's filter somewhere."""

TEXTS = st.sampled_from(EVIL) | st.text(max_size=40) | st.text(string.punctuation + " ", max_size=20)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Corner:
    """Dave's own session beside the sessions of others that say the same."""

    town: Town
    ids: dict[str, Ids]

    @property
    def scope(self) -> Scope:
        dave = self.town.dave
        return Scope(dave.tenant_id, dave.principal_id, (principal_key(dave.principal_id), "public"))

    @property
    def mine(self) -> UUID:
        return self.ids["dave"].session

    async def found(self, narrow: RecallFilter, query: str = "filters health failed") -> set[UUID]:
        """The sessions of what either leg gives, with nothing behind it."""
        parts = self.town.app.parts
        assert parts.lanes is not None
        index, generation = parts.index, parts.generation.number
        vector = await parts.lanes.embed_query(TenantScope(self.scope.tenant_id), query)
        lexical = await index.search_lexical(self.scope, generation, analyse_query(query), narrow, 200)
        dense = await index.search_dense(self.scope, generation, vector, narrow, 200)
        return {hit.session_id for hit in [*lexical, *dense]}


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def corner(town: Town) -> AsyncIterator[Corner]:
    visibility = {"alice": "public", "bob": "conversation", "dave": "conversation"}
    yield Corner(town, {name: await left_by(town.everybody[name], "filters", visibility=v) for name, v in visibility.items()})


@given(query=TEXTS, role=TEXTS, session=TEXTS)
@QUICK
async def test_T06_no_value_widens_what_is_found(corner: Corner, query: str, role: str, session: str) -> None:
    body = {"query": f"{query} health", "roles": [role or "x"], "top_k": 50}

    for asked in (body, {**body, "roles": None}, {**body, "roles": None, "session": session or "x"}):
        answer = await corner.town.dave.http.post("/v1/recall", content=json.dumps(asked))
        assert answer.status_code in (200, 404, 422), answer.text
        if answer.status_code == 200:
            assert {hit["session_id"] for hit in answer.json()["hits"]} <= {str(corner.mine)}


@pytest.mark.parametrize("value", EVIL)
async def test_T06_no_value_widens_what_the_index_gives(corner: Corner, value: str) -> None:
    """Without PostgreSQL, which would keep to itself what a filter let through."""
    for narrow in (RecallFilter(roles=(value,)), RecallFilter(roles=("user", value))):
        assert await corner.found(narrow) <= {corner.mine}


@pytest.mark.parametrize("value", EVIL)
async def test_T06_no_value_widens_what_is_erased(corner: Corner, value: str) -> None:
    quoted = "".join(f"%{byte:02x}" for byte in value.encode(errors="surrogatepass"))

    for path in (f"/v1/sessions/{quoted}", f"/v1/manifests/{quoted}"):
        assert (await corner.town.dave.http.delete(path)).status_code in (404, 405, 422)

    for name, ids in corner.ids.items():
        assert (await corner.town.everybody[name].http.get(f"/v1/manifests/{ids.manifest}/window")).status_code == 200


@given(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_T07_a_caller_names_no_key_of_a_filter(more: dict[str, str]) -> None:
    known = set(RecallRequest.model_fields)

    with pytest.raises(ValidationError):
        RecallRequest.model_validate({"query": "x", **{f"{name}~": value for name, value in more.items()}})
    narrow = RecallFilter(roles=tuple(more.values()))
    assert {condition.key for condition in filters.narrowing(narrow) if not isinstance(condition, filters.IdIn)} <= {
        "session_id", "roles", "last_at", "first_at",
    }  # fmt: skip
    assert known == {"query", "session", "top_k", "max_chars", "representation", "roles", "since", "until", "rerank"}


@given(data=st.data(), roles=st.lists(TEXTS, max_size=3), since=st.none() | st.datetimes(), until=st.none() | st.datetimes())
@QUICK
async def test_T09_no_narrowing_reaches_beyond_the_tenant(
    corner: Corner, data: st.DataObject, roles: list[str], since: datetime | None, until: datetime | None
) -> None:
    """Whatever is asked for beside it, the scope's filter holds for every leg."""
    sessions = data.draw(st.lists(st.sampled_from([ids.session for ids in corner.ids.values()]) | st.uuids(), max_size=4))
    zone = corner.town.app.parts.clock().tzinfo
    narrow = RecallFilter(
        session_ids=tuple(sessions),
        roles=tuple(roles),
        since=since.replace(tzinfo=zone) if since else None,
        until=until.replace(tzinfo=zone) if until else None,
    )

    assert await corner.found(narrow) <= {corner.mine}


async def test_T09_without_narrowing_everything_of_ones_own_is_found(corner: Corner) -> None:
    """Else the property above could not fail."""
    assert await corner.found(RecallFilter()) == {corner.mine}


@pytest.mark.parametrize("scope", [None, "", "*", " ", "\u200b", UUID(int=0), (), {}])
def test_T10_what_is_no_scope_makes_no_filter(scope: object) -> None:
    with pytest.raises(ValueError, match="needs"):
        filters.tenant(scope)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs"):
        filters.readable(scope, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["", "*", " ", "\u200b", "P:x", "all"])
def test_T10_no_acl_key_means_everybody(key: str) -> None:
    tenant, principal = UUID(int=1), UUID(int=2)

    with pytest.raises(ValueError, match="acl key"):
        Scope(tenant, principal, (principal_key(principal), key))
