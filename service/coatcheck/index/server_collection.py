"""The collection on a Qdrant server: its shape, its payload indexes and its strict mode, all of it before any data."""

from __future__ import annotations

from qdrant_client import AsyncQdrantClient, models

from coatcheck.domain.errors import RefusedToStart
from coatcheck.index.points import INDEXED_FIELDS, LEXICAL, IndexedField

LIMIT = 1_000
"""The most points that one query, page or list of ids names."""
UPSERT_BATCH = 250

_STRICT = models.StrictModeConfig(
    enabled=True,
    unindexed_filtering_retrieve=False,
    unindexed_filtering_update=False,
    search_allow_exact=True,
    max_query_limit=LIMIT,
    upsert_max_batchsize=UPSERT_BATCH,
    filter_max_conditions=LIMIT + 32,
    condition_max_size=LIMIT,
)


async def prepare(client: AsyncQdrantClient, collection: str, *, in_memory: bool) -> set[str]:
    """Makes the collection, or completes it, and returns the names of its dense vectors. Raises RefusedToStart."""
    if not await client.collection_exists(collection):
        await client.create_collection(
            collection,
            vectors_config={},
            sparse_vectors_config={LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            # No graph: search is exact over what the tenant's payload index yields.
            hnsw_config=models.HnswConfigDiff(m=0, payload_m=0),
            strict_mode_config=_STRICT,
        )
    elif not in_memory:
        await client.update_collection(collection, strict_mode_config=_STRICT)
    if not in_memory:
        for field in INDEXED_FIELDS:
            await client.create_payload_index(collection, field.name, _schema(field), wait=True)
    return await _dense_names(client, collection)


async def _dense_names(client: AsyncQdrantClient, collection: str) -> set[str]:
    parameters = (await client.get_collection(collection)).config.params
    sparse = (parameters.sparse_vectors or {}).get(LEXICAL)
    if sparse is None or sparse.modifier != models.Modifier.IDF or isinstance(parameters.vectors, models.VectorParams):
        raise RefusedToStart(f"The Qdrant collection {collection!r} was not made by Coatcheck: name another one.")
    return set(parameters.vectors or {})


def _schema(field: IndexedField) -> models.KeywordIndexParams | models.IntegerIndexParams:
    if field.kind in ("tenant", "keyword"):
        return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=field.kind == "tenant")
    return models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=field.kind == "number", range=field.kind == "range"
    )
