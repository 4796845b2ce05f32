"""What the source may not hold, whoever writes it: scopes made elsewhere, commits elsewhere, settings, clients and state anywhere.

Each rule is shown to fail on a line that breaks it.
"""

from __future__ import annotations

import inspect

import pytest

from coatcheck.domain.ports import VectorIndex
from tests.isolation.source import (
    Module,
    calls,
    calls_at_import,
    first_parameters,
    modules,
    optional_scopes,
    reads,
    rebinds_globals,
)

MODULES = modules()

TENANT_WALKS = {
    "app.bootstrap",
    "app.directory",
    "app.offline",
    "memory.cache_expiry",
    "memory.housekeeping",
    "memory.issuers",
    "memory.limits",
    "memory.offboarding",
    "memory.readiness",
    "memory.reconcile",
    "memory.restore",
    "memory.rounds",
    "memory.startup",
    "memory.tenant_limits",
    "memory.tenants",
}
"""Who may enter a tenant that no caller's context named: starts, workers and the directory of credentials."""

MADE_AT_IMPORT = {
    "Anthropic", "APIRouter", "ARRAY", "BatchLimits", "bulk.insert", "bulk.unnested", "bytes", "chr", "datetime", "Decision",
    "Depends", "dict.fromkeys", "enumerate", "Field", "float", "frozenset", "IndexedField",
    "ipaddress.ip_network", "ipaddress.IPv6Network",
    "json.JSONEncoder", "logging.getLogger", "MappingProxyType",
    "models.StrictModeConfig", "NewType", "OpenAIChat", "OpenAIResponses", "PackagedModel", "Path", "postgresql.dialect",
    "Prefixes", "Query", "Question", "range", "re.compile", "regex.compile", "reversed", "sorted",
    "sa.CheckConstraint", "sa.Column", "sa.ForeignKey",
    "sa.ForeignKeyConstraint", "sa.func.now", "sa.Index", "sa.MetaData", "sa.Table", "sa.text", "sa.TIMESTAMP",
    "sa.UniqueConstraint", "SnowballStemmer", "str.maketrans", "structlog.get_logger", "timedelta", "Tool", "tuple",
    "typer.Argument", "typer.Option", "typer.Typer", "TypeVar", "UUID",
}  # fmt: skip
"""Values, patterns, statements, declarations. A client, a pool, a cache or a lock is none of them."""

WITHOUT_SCOPE = {"scroll", "delete_generation", "flush", "check", "close"}
"""Of the index: what has no tenant, or every tenant's, and returns no content."""


def offenders(found: list[str], allowed: set[str]) -> list[str]:
    return sorted(name for name in set(found) if name not in allowed)


def test_scopes_and_contexts_are_made_by_identity_alone() -> None:
    made = [name for module in MODULES for name in calls(module, "Scope", "TenantScope", "RequestContext", "CacheScope")]

    assert [name for name in offenders(made, set()) if not name.startswith("identity.")] == []
    assert set(made) >= {"identity.context", "identity.standing", "identity.scopes", "identity.cache_scopes"}
    assert list(calls(Module.of("Scope(tenant, principal, acl)"), "Scope")) == ["somewhere"]
    assert list(calls(Module.of("scopes.TenantScope(tenant)"), "TenantScope")) == ["somewhere"]


def test_only_walks_over_all_tenants_enter_one_that_no_caller_named() -> None:
    walking = [name for module in MODULES for name in calls(module, "tenant_scope")]

    assert offenders(walking, TENANT_WALKS) == []


def test_nothing_commits_but_the_stores_database() -> None:
    committing = [name for module in MODULES for name in calls(module, "commit", "rollback")]

    # Migrations are run by the owner, offline; the pool takes what a connection may carry at its check-out.
    assert offenders(committing, {"store.database", "store.migrate", "store.engine"}) == []
    assert list(calls(Module.of("await tx.connection.commit()"), "commit")) == ["somewhere"]


@pytest.mark.parametrize("source", ["os.environ['X']", "from os import environ", "os.getenv('X')"])
def test_the_environment_is_read_by_the_settings_alone(source: str) -> None:
    names = ("os.environ", "os.getenv", "os.environb", "os.putenv")
    reading = [name for module in MODULES for name in reads(module, *names)]

    assert offenders(reading, {"settings"}) == []
    assert list(reads(Module.of(source), *names)) == ["somewhere"]


def test_what_is_made_when_a_module_is_imported_is_a_value() -> None:
    """A helper of the module's own is taken for what it is: a way to write a value."""
    for module in MODULES:
        # Crash points, armed by tests alone, for the whole process; the bound of one thread's work, set and reset around it, and
        # whom one thread's loading is told to; the lock around a library's own globals.
        if module.name in ("ops.faults", "compaction.effort", "models.lazily", "models.torch_runtime"):
            continue
        own = {node.name for node in module.tree.body if hasattr(node, "name")}
        made = [name for name in calls_at_import(module) if name not in own and not name.endswith(TEXT_METHODS)]
        assert offenders(made, MADE_AT_IMPORT | IMPORTED_HELPERS) == [], module.name
    assert list(calls_at_import(Module.of("CLIENT = httpx.AsyncClient()"))) == ["httpx.AsyncClient"]
    assert list(calls_at_import(Module.of("POOL: Pool = {'a': create_engine(url)}"))) == ["create_engine"]


TEXT_METHODS = (".join", ".replace", ".format", ".split", ".title", ".isalnum", ".isascii", ".values", "re.escape")
IMPORTED_HELPERS = {"Place", "each", "words", "problems", "session_key", "now"}


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    global current\n    current = 1",
        "SEEN = {}\ndef f(x):\n    SEEN[x] = 1",
        "SEEN: list[int] = []\ndef f(x):\n    SEEN.append(x)",
    ],
)
def test_no_module_keeps_state(source: str) -> None:
    keeping = [name for module in MODULES for name in rebinds_globals(module)]

    assert offenders(keeping, {"ops.faults"}) == []
    assert list(rebinds_globals(Module.of(source))) == ["somewhere"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(scope: Scope | None): ...",
        "def f(scope: Optional[TenantScope] = None): ...",
        "def f(x: int, scope: Scope = EVERYTHING): ...",
        "async def f(*, scope: Scope = EVERYTHING): ...",
    ],
)
def test_no_scope_is_optional(source: str) -> None:
    assert [name for module in MODULES for name in optional_scopes(module)] == []
    assert list(optional_scopes(Module.of(source)))


def test_whatever_asks_the_database_takes_a_scoped_transaction_first() -> None:
    names = (
        "ReadTransaction",
        "WriteTransaction",
        "WorkerTransaction",
        "DirectoryTransaction",
        "AnyTransaction",
        "AnyWriteTransaction",
    )
    kinds = {(name,) for name in names}
    beside = {"database", "durability", "engine", "engine_files", "migrate", "embedded", "roles", "binary"}
    for module in MODULES:
        package, _, name = module.name.partition(".")
        if package == "store" and name not in beside and "." not in name:
            for function, first in first_parameters(module):
                # A stream opens a transaction for each page, under the scope that it takes.
                assert first[:1] in kinds or first == ("Database", "TenantScope"), f"{module.name}.{function}"


def test_whatever_reads_the_response_cache_takes_a_whole_cache_scope() -> None:
    """After its transaction, without a default: a look-up over half a scope cannot be written down."""
    [module] = [module for module in MODULES if module.name == "store.response_cache"]

    functions = dict(first_parameters(module))

    assert functions
    assert {second for _, second in functions.values()} == {"CacheScope"}


def test_whatever_asks_the_index_takes_a_scope_first() -> None:
    for name, method in inspect.getmembers(VectorIndex, inspect.isfunction):
        if not name.startswith("_") and name not in WITHOUT_SCOPE:
            first = list(inspect.signature(method).parameters.values())[1]
            assert first.annotation in ("Scope", "TenantScope"), name
            assert first.default is inspect.Parameter.empty
