"""Every way to read what was stored, asked at once."""

from __future__ import annotations

import httpx

from tests import rpc


async def statuses(
    http: httpx.AsyncClient, *, session_id: str | None = None, manifest_id: str | None = None, sha256: str | None = None
) -> dict[str, int]:
    """What each route answers to these ids: over HTTP its status, over MCP that of the problem."""
    paths = []
    if session_id is not None:
        paths += [f"/v1/sessions/{session_id}", f"/v1/sessions/{session_id}/export"]
    if manifest_id is not None:
        paths += [f"/v1/manifests/{manifest_id}{part}" for part in ("", "/entries?text=true", "/window")]
    if sha256 is not None:
        paths.append(f"/v1/segments/{sha256}")
    found = {path: (await http.get(path)).status_code for path in paths}
    tools: list[tuple[str, dict[str, object]]] = []
    if session_id is not None:
        found["recall"] = (await http.post("/v1/recall", json={"query": "failed", "session": session_id})).status_code
        found["patch"] = (await http.patch(f"/v1/sessions/{session_id}", json={})).status_code
        tools.append(("recall_memory", {"query": "failed", "session": session_id}))
    if manifest_id is not None:
        tools.append(("read_manifest", {"manifest_id": manifest_id}))
    if sha256 is not None:
        tools.append(("read_segment", {"sha256": sha256}))
    for name, arguments in tools:
        result = await rpc.call(http, name, **arguments)
        found[name] = result["structuredContent"]["status"] if result.get("isError") else 200
    return found


async def everything_said(http: httpx.AsyncClient, queries: list[str]) -> str:
    """All that recall gives the caller for these questions, over HTTP and MCP."""
    said = []
    for query in queries:
        said.append((await http.post("/v1/recall", json={"query": query, "top_k": 50, "max_chars": 200_000})).text)
        said.append(str(await rpc.call(http, "recall_memory", query=query, top_k=50, max_chars=200_000)))
    return "\n".join(said)
