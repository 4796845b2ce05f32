"""Threats that a line of source brings in: each rule is held over every module, and shown to fail on a line that breaks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
import yaml

from coatcheck.compaction import strict_yaml
from coatcheck_client import wire
from coatcheck_client.wire.base import Request
from tests.isolation.source import Module, calls, modules

MODULES = modules()

SENDS = {
    "httpx", "requests", "aiohttp", "urllib3", "urllib.request", "http.client", "socket", "ftplib", "smtplib", "grpc", "websockets",
}  # fmt: skip
MAY_SEND = {
    "app.compose",  # its own host's name, for the owner of a lease
    "app.serve",  # the socket that it listens on; its own probes
    "outbound.client",  # the one guarded client: keys of issuers that the installation's operator has named
}
"""What a request names is never fetched, but by the guarded client. The database, the index and model files are reached by
their own libraries, at addresses that the settings give."""

TOUCHES = {
    "read_text", "write_text", "read_bytes", "write_bytes", "mkdir", "mkdtemp", "rmtree", "copytree", "rename", "unlink",
    "symlink_to", "hardlink_to", "chmod", "iterdir", "glob", "rglob",
}  # fmt: skip
MAY_TOUCH = {
    "api.openapi",  # writes the document, as a command
    "app.bootstrap", "app.data_dir", "app.keys", "app.serve", "app.storage",
    "compaction.policy_document", "compaction.redaction.own_rules",  # those that a setting names
    "compaction.redaction.detector",  # the rules' cache
    "identity.private_file",
    "gpu.fp8.config", "gpu.fp8.quantise", "gpu.fp8.reading", "gpu.fp8.record", "gpu.fp8.writing",  # folders that a command names
    "gpu.kernels.ahead",  # the assembler's input, in a folder of its own
    "index.edge_folder",
    "memory.journal",
    "models.checkpoints", "models.fastembed", "models.gliclass_loading", "models.packaged", "models.pretrained",
    "models.registry",
    "ops.folders", "ops.ordinary_files", "ops.unfinished",
    "settings",
    "store.embedded", "store.engine_files", "store.left_behind", "store.migrate",
}  # fmt: skip
"""Who touches files, all of them at places that the settings name."""

DESERIALISES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "jsonpickle", "msgpack"}
READS_WEIGHTS = {
    "models.entailment",
    "models.gliclass_loading",
    "models.pretrained",
    "models.sentence_transformer",
    "models.seq2seq",
    "models.token_classifier",
    "models.torch_runtime",
}
"""Who may use torch, whose own reader takes pickles: they have weights read from safetensors alone, by the libraries."""
SERVES = ("api.", "identity.", "memory.")
MAY_REMEMBER = {
    # Made for one request.
    "api.edge._Answer.status", "api.edge._Body._patience_s", "api.edge._Body._whole", "api.rights.Rights._asked.context",
    "api.rights.Rights._verified_at", "memory.export_lines.Lines._runs", "memory.transfer._Section.is_over",
    # The service's own, and of nobody.
    "api.gate.Gate.closed_at", "api.gate.Gate.draining", "api.gate.Gate.in_flight", "api.mcp.McpDoor._app",
    "api.mcp.McpDoor._running", "api.probes.RecentReadiness._last", "memory.erasing.Eraser._parts.state.erased",
    "memory.offboarding.Offboarding._parts.state.erased", "memory.startup.Startup._parts.state.building",
    # By tenant.
    "memory.limits.Limiter._known[tenant_id].read_at",
}  # fmt: skip
"""Attributes that are set after their object was made. Anything else that serves requests is used by all of them at once."""
EXECUTES = {"eval", "exec", "compile", "__import__"}
LOADS_YAML = {"load", "load_all", "unsafe_load", "full_load"}
SETS_UP = {"store.roles", "store.embedded", "store.migrate"}
"""Makes roles and the database, at a start, with names that stand in the source."""


def imports(module: Module) -> Iterator[str]:
    """Every module that is imported, anywhere in it."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(among: set[str], of: list[Module]) -> set[str]:
    return {m.name for m in of if any(name in among or name.partition(".")[0] in among for name in imports(m))}


def builtins_called(module: Module, names: set[str]) -> Iterator[str]:
    """The module's name for each call of one of these by its bare name, or through ``builtins``."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("builtins.") in names:
            yield module.name


def touching(module: Module) -> Iterator[str]:
    """The module's name for each call that opens a file or changes a folder."""
    yield from builtins_called(module, {"open", "os.open", "io.open"})
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TOUCHES:
            yield module.name


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def made_in_functions(module: Module) -> Iterator[str]:
    """What is put into the text of a statement when a function runs; what is put in at import are the source's own names."""
    for function in functions(module):
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("text", "exec_driver_sql"):
                yield from (ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.FormattedValue | ast.BinOp))


def remembered(module: Module) -> Iterator[str]:
    """The attributes of ``self`` that a method sets which does not make the object; context variables and globals too."""
    for kind in (node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)):
        for method in (node for node in kind.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            if method.name not in ("__init__", "__post_init__"):
                stored = (node for node in ast.walk(method) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
                named = (ast.unparse(node) for node in stored)
                yield from (f"{module.name}.{kind.name}.{name[5:]}" for name in named if name.startswith("self."))
    yield from (f"{module.name}.{name}" for node in ast.walk(module.tree) if isinstance(node, ast.Global) for name in node.names)
    yield from (f"{module.name}.ContextVar" for _ in calls(module, "ContextVar", "local"))


def keywords(module: Module, name: str) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.keyword) and node.arg == name:
            yield f"{module.name}: {ast.unparse(node.value)}"


@pytest.mark.parametrize("source", ["sa.text(f'SELECT * FROM {name}')", "c.exec_driver_sql('DROP TABLE %s' % name)"])
def test_T08_what_names_a_table_or_a_column_stands_in_the_source(source: str) -> None:
    making = {m.name for m in MODULES if list(made_in_functions(m))}
    bulk_in_functions = [
        m.name
        for m in MODULES
        for function in functions(m)
        if m.name != "store.bulk" and any(call in ast.unparse(function) for call in ("bulk.insert(", "bulk.unnested("))
    ]

    assert making <= SETS_UP | {"store.bulk"}
    assert bulk_in_functions == []
    assert list(made_in_functions(Module.of(f"def f(name):\n    {source}")))


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    async def f(self, context):\n        self._context = context",
        "class A:\n    def f(self):\n        self._asked.tenant, self.n = 1, 2",
        "class A:\n    def f(self):\n        with self.slot() as self._held:\n            self.n += 1",
        "def f():\n    global tenant",
        "current = contextvars.ContextVar('current')",
    ],
)
def test_T17_what_serves_requests_keeps_nothing_of_one_where_another_finds_it(source: str) -> None:
    serving = [m for m in MODULES if m.name.startswith(SERVES)]

    assert {kept for m in serving for kept in remembered(m)} == MAY_REMEMBER
    assert len(list(remembered(Module.of(source)))) >= 1


@pytest.mark.parametrize("source", ["import httpx", "from urllib.request import urlopen", "def f():\n    import socket"])
def test_T30_nothing_is_fetched_that_a_request_names(source: str) -> None:
    assert {name for name in importers(SENDS, MODULES) if not name.startswith("cli.")} <= MAY_SEND
    assert importers(SENDS, [Module.of(source)]) == {"somewhere"}


@pytest.mark.parametrize("source", ["open(name)", "os.open(name, 0)", "(folder / name).write_bytes(x)", "shutil.rmtree(name)"])
def test_T31_files_are_touched_in_few_places_at_paths_of_the_settings(source: str) -> None:
    assert {name for m in MODULES for name in touching(m) if not name.startswith("cli.")} <= MAY_TOUCH
    assert importers({"tarfile", "zipfile"}, MODULES) == set()
    assert set(touching(Module.of(source))) == {"somewhere"}


@pytest.mark.parametrize("source", ["import pickle", "from joblib import load", "def f():\n    import marshal"])
def test_T32_nothing_is_read_that_can_run(source: str) -> None:
    """What comes in is JSON by our own reader; what comes with the package is YAML by its safe loader."""
    assert importers(DESERIALISES, MODULES) == set()
    assert importers(DESERIALISES, [Module.of(source)]) == {"somewhere"}


@pytest.mark.parametrize("source", ["import torch\ntorch.load(path)", "def f():\n    from torch import load\n    load(path)"])
def test_T32_weights_are_numbers_in_files_that_can_hold_nothing_else(source: str) -> None:
    with_torch = [m for m in MODULES if importers({"torch"}, [m])]
    without = [m.name for m in MODULES for node in ast.walk(m.tree) if isinstance(node, ast.Call) and _reads_pickles(node)]

    assert {m.name for m in with_torch if not m.name.startswith("gpu.")} <= READS_WEIGHTS
    assert {found for m in with_torch for found in calls(m, "load")} <= set()
    assert without == []
    assert list(calls(Module.of(source), "load")) == ["somewhere"]
    assert _reads_pickles(ast.parse("Some.Model.from_pretrained(folder)", mode="eval").body)
    assert not _reads_pickles(ast.parse("Model.from_pretrained(folder, use_safetensors=True)", mode="eval").body)


def _reads_pickles(node: ast.expr) -> bool:
    """Whether a library is asked for a model, and not for one of safetensors."""
    asked = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Model.from_pretrained")
    return asked and "use_safetensors=True" not in ast.unparse(node)


@pytest.mark.parametrize("source", ["eval(text)", "exec(text)", "builtins.__import__(name)"])
def test_T32_no_text_becomes_code(source: str) -> None:
    assert {name for m in MODULES for name in builtins_called(m, EXECUTES)} == set()
    assert set(builtins_called(Module.of(source), EXECUTES)) == {"somewhere"}


@pytest.mark.parametrize("name", sorted(LOADS_YAML))
def test_T32_yaml_is_read_by_its_safe_loader(name: str) -> None:
    with_yaml = [m for m in MODULES if importers({"yaml"}, [m])]

    assert {found for m in with_yaml for found in calls(m, *LOADS_YAML)} == set()
    assert issubclass(strict_yaml._Loader, yaml.SafeLoader)
    assert {m.name for m in with_yaml} == {"compaction.strict_yaml"}
    assert list(calls(Module.of(f"yaml.{name}(text)"), *LOADS_YAML)) == ["somewhere"]


def test_T32_arrays_are_loaded_without_objects() -> None:
    allowed = [value for m in MODULES for value in keywords(m, "allow_pickle")]
    weights = [value for m in MODULES for value in keywords(m, "weights_only")]

    assert [value for value in allowed if not value.endswith(": False")] == []
    assert [value for value in weights if not value.endswith(": True")] == []
    assert list(keywords(Module.of("np.load(path, allow_pickle=True)"), "allow_pickle")) == ["somewhere: True"]


def test_T33_a_model_brings_no_code_and_is_chosen_by_the_settings() -> None:
    trusting = [value for m in MODULES for value in keywords(m, "trust_remote_code")]
    choosing = {m.name for m in MODULES if "coatcheck.app.models" in set(imports(m))}

    assert trusting == []
    assert {name.partition(".")[0] for name in choosing} <= {"app", "cli"}
    assert list(keywords(Module.of("f(trust_remote_code=True)"), "trust_remote_code")) == ["somewhere: True"]


def test_T33_no_request_has_a_field_for_a_model() -> None:
    models = [model for model in vars(wire).values() if isinstance(model, type) and issubclass(model, Request)]
    fields = {field for model in models for field in model.model_fields}

    assert {"query", "session", "window"} <= fields
    assert not fields & {"embedder", "reranker", "model_path", "model_id", "url", "endpoint", "base_url"}
