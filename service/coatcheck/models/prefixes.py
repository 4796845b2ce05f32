"""What an embedding model was trained to see before a query and before a passage, from the models' cards."""

from __future__ import annotations

from dataclasses import dataclass

BGE_PREFIX = "Represent this sentence for searching relevant passages: "
"""What the model card of bge v1.5 puts before a short query; passages have none."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Empty where the model was trained without."""

    query: str = ""
    passage: str = ""


# By the beginning of the name, in lower case. The library leaves these to its caller.
_BY_NAME = {
    "baai/bge-small-en": Prefixes(BGE_PREFIX),
    "baai/bge-base-en": Prefixes(BGE_PREFIX),
    "baai/bge-large-en": Prefixes(BGE_PREFIX),
    "baai/bge-small-zh": Prefixes("为这个句子生成表示以用于检索相关文章："),
    "mixedbread-ai/mxbai-embed-large": Prefixes(BGE_PREFIX),
    "snowflake/snowflake-arctic-embed": Prefixes(BGE_PREFIX),
    "intfloat/multilingual-e5": Prefixes("query: ", "passage: "),
    "nomic-ai/nomic-embed-text": Prefixes("search_query: ", "search_document: "),
    "google/embeddinggemma": Prefixes("task: search result | query: ", "title: none | text: "),
    "qwen/qwen3-embedding": Prefixes(
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
    ),
}


def prefixes_of(name: str) -> Prefixes:
    """Those of a model by its name, whatever its case: the library finds it so too."""
    lowered = name.lower()
    return next((prefixes for start, prefixes in _BY_NAME.items() if lowered.startswith(start)), Prefixes())
