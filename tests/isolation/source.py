"""The service's source as syntax trees, and what is looked for in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import coatcheck

ROOT = Path(coatcheck.__path__[0])


@dataclass(frozen=True, slots=True)
class Module:
    """One module: its name below ``coatcheck``, and its tree."""

    name: str
    tree: ast.Module

    @classmethod
    def of(cls, source: str, name: str = "somewhere") -> Module:
        return cls(name, ast.parse(source))


def modules() -> list[Module]:
    """Every module of the service."""
    return [
        Module(".".join(path.relative_to(ROOT).with_suffix("").parts), ast.parse(path.read_text("utf-8")))
        for path in sorted(ROOT.rglob("*.py"))
    ]


def calls(module: Module, *names: str) -> Iterator[str]:
    """The module's name for each call of something whose last name is one of these."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _last(node.func) in names:
            yield module.name


def reads(module: Module, *names: str) -> Iterator[str]:
    """As ``calls``, for names with their module (``os.environ``), however they were imported."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in names:
            yield module.name
        if isinstance(node, ast.ImportFrom) and any(f"{node.module}.{alias.name}" in names for alias in node.names):
            yield module.name


def calls_at_import(module: Module) -> Iterator[str]:
    """What is called to make a module-level value."""
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            for node in _outside_functions(statement.value):
                if isinstance(node, ast.Call):
                    yield ast.unparse(node.func)


def rebinds_globals(module: Module) -> Iterator[str]:
    """Functions that assign to a module's name, or change a module-level container in place."""
    containers = {
        target.id
        for statement in module.tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Dict | ast.List | ast.Set)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    }
    changes = {"append", "add", "update", "setdefault", "pop", "clear", "extend", "insert", "remove", "discard"}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global):
            yield module.name
        changed = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in changes:
            changed = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            changed = node.value
        if isinstance(changed, ast.Name) and changed.id in containers:
            yield module.name


def optional_scopes(module: Module) -> Iterator[str]:
    """Parameters that take a scope and may do without one."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
            for argument in arguments:
                kind = ast.unparse(argument.annotation) if argument.annotation else ""
                if re.search(r"\b(?:Tenant)?Scope\b", kind) and re.search(r"\bNone\b|\bOptional\b", kind):
                    yield f"{module.name}.{node.name}"
            scoped = [a for a in arguments if a.annotation and ast.unparse(a.annotation) in ("Scope", "TenantScope")]
            if scoped and arguments.index(scoped[-1]) >= len(arguments) - len(defaults):
                yield f"{module.name}.{node.name}"


def first_parameters(module: Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each public coroutine at the module's level with the annotations of its first two parameters."""
    for node in module.tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.name, tuple(ast.unparse(a.annotation) if a.annotation else "" for a in node.args.args[:2])


def _outside_functions(value: ast.expr) -> Iterator[ast.AST]:
    if not isinstance(value, ast.Lambda):
        yield value
        for child in ast.iter_child_nodes(value):
            if isinstance(child, ast.expr | ast.comprehension | ast.keyword):
                yield from _outside_functions(child)  # type: ignore[arg-type]


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
