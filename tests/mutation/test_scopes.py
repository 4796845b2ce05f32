"""Every change of the modules that make scopes, claims and filters is noticed by their own tests, but for the words of a message.

Four of the groups took 57 minutes, one after the other, while six times as many processes as cores were at work.

mutmut looks for ``src``: it is run in a copy that is laid out so, with the tests that hold these modules. Statements and policies
are SQL, and are mutated in tests/store.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.mutation import operators
from tests.postgres import Postgres, running_postgres

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Group:
    """Modules, the tests that hold them, and functions of theirs that put no scope and are left alone."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without_scope: tuple[str, ...] = ()


GROUPS = {
    "scopes and filters": Group(
        ("domain/scopes", "identity/context", "identity/scopes", "index/filters", "index/points"),
        (
            "tests/identity/test_context.py",
            "tests/identity/test_scopes.py",
            "tests/index/test_contract_search.py",
            "tests/index/test_contract_writes.py",
            "tests/index/test_filters.py",
        ),
        # What a scan reads out of a payload, and how hits are told apart: a point that says nonsense is named by its own tests.
        ("to_stored", "to_hits", "_uuid", "_uuid_of", "_count"),
    ),
    "cache scopes": Group(("identity/cache_scopes",), ("tests/identity/test_cache_scopes.py",)),
    "rights": Group(
        (
            "api/rights",
            "domain/response_cache",
            "domain/sessions",
            "identity/authenticate",
            "identity/credentials",
        ),
        (
            "tests/api/test_rights.py",
            "tests/domain/test_response_cache.py",
            "tests/domain/test_sessions.py",
            "tests/identity/test_authenticate.py",
            "tests/identity/test_credentials.py",
        ),
    ),
    "standing": Group(
        ("identity/standing", "memory/standing", "store/credentials"),
        (
            "tests/identity/test_authenticate.py",
            "tests/identity/test_tokens.py",
            "tests/memory/test_standing.py",
            "tests/store/test_credentials.py",
        ),
    ),
    "times ahead": Group(("store/ahead",), ("tests/store/test_ahead.py",)),
    "access": Group(("memory/access",), ("tests/memory/test_access.py", "tests/memory/test_new_session.py")),
    "claims": Group(
        ("store/database", "store/permission"),
        (
            "tests/memory/test_standing.py",
            "tests/store/test_database.py",
            "tests/store/test_directory.py",
            "tests/store/test_statement_mutants.py",
        ),
        # Pauses between attempts, a connection's life, and what the server promises of its disk.
        ("connect", "check", "check_durability", "close", "_attempts"),
    ),
}
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {modules}
also_copy = ["migrations"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:schemathesis", "-q", "-x", "-k", "not takes_the_time and not breaks_the_reader"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
addopts = "--import-mode=importlib -m 'not accept'"
markers = ["accept: a longer proof"]
"""
EQUIVALENT: dict[tuple[str, str], str] = {
    ("x_kind_or_team", 'kind, _, team = text.rpartition(":")'): "no kind has a colon, and no UUID",
    ("x_session_of_owned_run", "if True:"): "who is no operator is asked for the session by owned_session all the same",
    (
        "xǁDatabaseǁdirectory",
        'claim = _claim("coatcheck_worker", None, ())',
    ): "a setting of NULL is set empty: no tenant either way",
    ("xǁDatabaseǁ_transaction", "pass"): "the driver begins with its first statement, and the engine with its own",
    **{
        ("xǁAuthenticatorǁ__init__", line): "whose the proof is that nobody gave, and against what, is all the same"
        for line in (
            "self._nobody = new_api_key(UUID(int=1), None)",
            "self._nobody = new_api_key(UUID(int=2), UUID(int=1))",
            "self._nobody = new_api_key(UUID(int=1), UUID(int=2))",
            "self._no_hash = secrets.token_bytes(None)",
        )
    },
    ("x_new_api_key", "return ApiKey(tenant_id, key_id, secrets.token_urlsafe(None), kind)"): "32 bytes is what the library gives",
    **{
        ("xǁAuthenticatorǁauthenticate", line): "without a record nothing is proven, and without a credential there is none"
        for line in (
            "if (not proven):",
            "if record is None and presented is None or not proven:",
            "if (record is None) or not proven:",
            "if (presented is None) or not proven:",
        )
    },
    ("xǁAuthenticatorǁ_proves", "version = record.key_version if (held) else None"): "what is held is of a record",
    (
        "x_find_key",
        "if not found or found[0][9] is None:  # no tenant; no principal, and so no key",
    ): "a principal that is there has a role and a status",
    **{
        ("x_find_delegation", line): "where there is no delegation, nothing is named so that it hangs on"
        for line in (
            "key = await directory.find_key(tx, (top.parent_key_id if top is not None else None))",
            'speaks = await issuers.speaks_for(tx, (top.parent_issuer if top is not None else None) or "XXXX")',
            "speaks = await issuers.speaks_for(tx, (top.parent_issuer if top is not None else None))",
            "if (key is None and not speaks):",
            "if top is None and rights is None or (key is None and not speaks):",
            "if (top is None) or (key is None and not speaks):",
            "if (rights is None) or (key is None and not speaks):",
        )
    },
    ("x__of_role", "if (principal is None):"): "a principal is of a tenant",
    ("xǁRightsǁ__init__", "self._verified_at = None"): "they are verified before anything asks how old they are",
    ("xǁRightsǁ__init__", "self._verified_at = 1.0"): "the same",
    ("xǁRightsǁstill_stand", "if (not (await self.verify()).covers(begun_with)):"): "nobody is at work before they were verified",
    ("xǁRightsǁ_is_old", "return time.monotonic() - self._verified_at >= self._recheck_s"): "a moment has no length",
    (
        "xǁDimensionsǁ__post_init__",
        "if any(len(value) != FINGERPRINT_DIGITS for value in self.as_json().values()):",
    ): "all of them are texts",
    ("x__claim", '"read_only": "ON" if read_only else "off",'): "PostgreSQL reads on and off in either case",
    ("x__claim", '"read_only": "on" if read_only else "OFF",'): "the same",
    ("x__claim", '"plans": "FORCE_GENERIC_PLAN" if plan_once else "auto",'): "the same",
    ("x__claim", '"plans": "force_generic_plan" if plan_once else "AUTO",'): "the same",
}
"""Mutants that give and take nothing, by function and the line that they write, each with the reason."""
_SURVIVED = re.compile(r"^\s*(\S+): (survived|suspicious|timeout|no tests)$", re.MULTILINE)
_ALL = re.compile(r"^\s*(\S+): (?:killed|survived|suspicious|timeout|no tests)$", re.MULTILINE)
_WORDS = re.compile(r"""raise \w+\((?:f?"[^"]*"|None)\)|f?"[^"]*"|None""")


@pytest.mark.accept
@pytest.mark.parametrize("name", GROUPS)
def test_T10_every_change_of_a_scope_or_a_filter_is_noticed(tmp_path: Path, name: str) -> None:
    group, began = GROUPS[name], time.monotonic()
    laid_out(tmp_path, group)

    with running_postgres(None) as postgres:  # of no password, which every mutant's tests then need not be told
        mutmut = partial(_mutmut, tmp_path, postgres)
        ran = mutmut("run", "--max-children", "2")
        results = mutmut("results", "--all", "true")
        survived = {mutant: _change(mutmut("show", mutant)) for mutant, _ in _SURVIVED.findall(results)}

    print(f"{name}: {len(_ALL.findall(results))} mutants in {time.monotonic() - began:.0f} s, {len(survived)} live", survived)
    assert "Running mutation testing" in ran
    assert {mutant: change for mutant, change in survived.items() if not _changes_nothing(mutant, *change)} == {}


def laid_out(folder: Path, group: Group) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "service" / "coatcheck", folder / "src" / "coatcheck", ignore=ignored)
    for name in ("tests", "migrations"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    mutated = [f"src/coatcheck/{module}.py" for module in group.modules]
    for path in mutated:
        file = folder / path
        source = operators.left_alone(file.read_text("utf-8"), group.without_scope)
        file.write_text(operators.without_properties(source), "utf-8")
    (folder / "pyproject.toml").write_text(SETTINGS.format(modules=mutated, tests=list(group.tests)), "utf-8")


def _mutmut(folder: Path, postgres: Postgres, *arguments: str) -> str:
    command = [sys.executable, "-m", "tests.mutation.operators", *arguments]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "clients" / "python"),  # the service is the copy's, not this checkout's
        "COATCHECK_TEST_DATABASE_URL": postgres.owner_url("postgres"),
        "COATCHECK_TEST_TEMPLATE": postgres.template,
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=True, timeout=3_600
    )  # fmt: skip
    return done.stdout


def _function(mutant: str) -> str:
    """``x_name`` or ``xǁClassǁname``, as mutmut calls it."""
    return mutant.rpartition(".")[2].partition("__mutmut_")[0]


def _change(shown: str) -> tuple[str, str]:
    """The lines that a mutant takes away and adds."""
    lines = [line for line in shown.splitlines() if not line.startswith(("---", "+++"))]
    gone = "\n".join(line[1:] for line in lines if line.startswith("-"))
    return gone, "\n".join(line[1:] for line in lines if line.startswith("+"))


def _changes_nothing(mutant: str, before: str, after: str) -> bool:
    return (_function(mutant), after.strip()) in EQUIVALENT or _is_of_words_alone(before, after)


def _is_of_words_alone(before: str, after: str) -> bool:
    """Whether an error says something else and nothing more."""
    return "raise " in before and _WORDS.sub("", before) == _WORDS.sub("", after)


def test_only_the_words_of_an_error_may_change() -> None:
    assert _is_of_words_alone('raise Forbidden("No.")', "raise Forbidden(None)")
    assert _is_of_words_alone('raise Forbidden(f"No {x}.")', 'raise Forbidden("XXNoXX")')
    assert not _is_of_words_alone("if scope.tenant_id == NIL:", "if scope.tenant_id != NIL:")
    assert not _is_of_words_alone('return Equals("tenant_id", x)', 'return Equals("XXtenant_idXX", x)')
