"""The plugin: armed once, each part by what is there, nothing changed that is absent or built otherwise, and all of it said."""

from __future__ import annotations

import importlib
import json
import logging
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from coatcheck.gpu.vllm import plugin
from coatcheck.gpu.vllm.asking import as_values, asked
from coatcheck.gpu.vllm.parts import Report, State
from coatcheck.gpu.vllm.sparse_types import ENTRY_POINT as NAME
from tests.gpu.vllm.standin import ALL, PAGES, PAGES_SOURCE, PLE, PLE_SOURCE, ROUTES, WORKSPACES, write

ROOT = Path(__file__).parents[3]


def states(report: Report) -> dict[str, State]:
    return {part.name: part.state for part in report.parts}


def everything(state: State) -> dict[str, State]:
    """Of every part but the one whose place these stand-ins lack: it wants torch, and is tested where that is."""
    found = dict.fromkeys(("ple-loading", "expert-routes", "expert-workspaces", "nvfp4-cache", "page-plan"), state)
    return {**found, "nvfp4-cache": State.ABSENT}


@pytest.mark.usefixtures("installed")
def test_without_vllm_nothing_is_changed_and_each_part_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "vllm.coatcheck"):
        plugin.register()

    assert states(plugin.armed().report()) == everything(State.ABSENT)
    assert plugin.armed().report().vllm is None
    assert [record.message for record in caplog.records] == [
        f"coatcheck {name}: nothing to change in what is installed" for name in everything(State.ABSENT)
    ]


def test_a_place_is_changed_when_it_is_imported_and_not_before(installed: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(installed, ALL)
    with caplog.at_level(logging.INFO, "vllm.coatcheck"):
        plugin.register()
        before = states(plugin.armed().report())
        assert PLE not in sys.modules
        for name in ALL:
            importlib.import_module(name)

    assert before == everything(State.WAITING)
    assert states(plugin.armed().report()) == everything(State.APPLIED)
    assert f"coatcheck ple-loading: {PLE}: applied" in caplog.text


def test_what_is_imported_already_is_changed_at_once(installed: Path) -> None:
    write(installed, ALL)
    for name in ALL:
        importlib.import_module(name)

    plugin.register()

    assert states(plugin.armed().report()) == everything(State.APPLIED)


def test_registering_again_and_importing_again_change_nothing_twice(installed: Path) -> None:
    write(installed, ALL)
    plugin.register()
    modules = [importlib.import_module(name) for name in ALL]
    before = [modules[0].Qwen4ExpNGramEmbedding.load_weights, modules[1].FlashInferB12xExperts.apply, modules[2].B12xMoEWrapper.run]

    plugin.register()
    again = plugin.armed()
    for module in modules:
        again._apply(module)

    assert len([finder for finder in sys.meta_path if isinstance(finder, plugin.Armed)]) == 1
    after = [modules[0].Qwen4ExpNGramEmbedding.load_weights, modules[1].FlashInferB12xExperts.apply, modules[2].B12xMoEWrapper.run]
    assert after == before


def test_a_module_keeps_its_own_loader_and_its_source(installed: Path) -> None:
    write(installed, {PLE: PLE_SOURCE})
    plugin.register()

    module = importlib.import_module(PLE)

    assert module.__spec__ is not None
    assert type(module.__spec__.loader) is type(sys.modules["vllm"].__loader__)
    assert module.__spec__.loader is module.__loader__


@pytest.mark.parametrize(
    ("place", "source", "part"),
    [
        (PLE, "Qwen4ExpNGramEmbedding = 3\n", "ple-loading"),
        (PLE, "class Qwen4ExpNGramEmbedding: pass\n", "ple-loading"),
        (ROUTES, "class FlashInferB12xExperts:\n    def apply(self, ids, weights): pass\n", "expert-routes"),
        (ROUTES, "", "expert-routes"),
        (WORKSPACES, "class B12xMoEWrapper:\n    def run(self): pass\n", "expert-workspaces"),
        (PAGES, "class Platform:\n    def _align_hybrid_block_size(self): pass\n", "page-plan"),
    ],
)
def test_a_place_that_is_built_otherwise_is_left_as_it_is(place: str, source: str, part: str, installed: Path) -> None:
    write(installed, {place: source})
    plugin.register()

    module = importlib.import_module(place)

    assert states(plugin.armed().report())[part] is State.UNSUITABLE
    assert "coatcheck" not in str(vars(module).values())


def test_a_part_that_fails_leaves_the_others_and_vllm_alone(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(installed, ALL)
    monkeypatch.setattr("coatcheck.gpu.vllm.ple_loading.CLASS", None)
    plugin.register()

    for name in ALL:
        importlib.import_module(name)

    assert states(plugin.armed().report()) == {**everything(State.APPLIED), "ple-loading": State.UNSUITABLE}


def test_a_class_that_is_only_handed_on_is_changed_where_it_is_from(installed: Path) -> None:
    elsewhere = "vllm.models.qwen4_exp.nvidia.ngram_embedding"
    write(installed, {elsewhere: PLE_SOURCE, PLE: f"from {elsewhere} import Qwen4ExpNGramEmbedding\n"})
    plugin.register()

    importlib.import_module(PLE)

    [ple] = [part for part in plugin.armed().report().parts if part.name == "ple-loading"]
    found = {place.module: place.state for place in ple.places if place.state is not State.ABSENT}
    assert found == {elsewhere: State.APPLIED, PLE: State.NOT_NEEDED}


def test_asking_may_import_what_is_waited_for_and_survives_what_cannot_be(installed: Path) -> None:
    write(installed, {**ALL, ROUTES: "raise RuntimeError('no device')\n"})

    report = asked(load=True)

    assert states(report) == {**everything(State.APPLIED), "expert-routes": State.WAITING}
    assert json.loads(json.dumps(as_values(report)))["vllm"] == "vllm of no known version"


def test_a_hybrid_models_block_is_told_and_left_alone(installed: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(installed, {PAGES: PAGES_SOURCE})
    plugin.register()
    hybrid = {
        "num_hidden_layers": 48, "full_attention_interval": 4, "num_key_value_heads": 2, "head_dim": 256,
        "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
    }  # fmt: skip
    text_config = SimpleNamespace(to_dict=lambda: hybrid)
    config = SimpleNamespace(
        cache_config=SimpleNamespace(cache_dtype="nvfp4"), model_config=SimpleNamespace(hf_text_config=text_config)
    )

    with caplog.at_level(logging.INFO, "vllm.coatcheck"):
        importlib.import_module(PAGES).Platform._align_hybrid_block_size(config, 5_600)
        hybrid.pop("head_dim")
        importlib.import_module(PAGES).Platform._align_hybrid_block_size(config, 5_600)

    assert config.cache_config.block_size == 5_600
    known, unknown = caplog.records[-2:]
    assert "blocks of 5,600 tokens in nvfp4 (the least that holds a state: 5,568)" in known.getMessage()
    assert "not known" in unknown.getMessage()


def test_the_entry_point_stands_in_vllms_group_and_imports_nothing_of_the_service() -> None:
    """As it is declared; that an installed vLLM finds it is among what ``make accept`` proves."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    module, _, function = declared["vllm.general_plugins"]["coatcheck"].partition(":")
    code = (
        "import sys\nbefore = set(sys.modules)\n"
        f"from {module} import {function}\n{function}()\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(tops - set(sys.stdlib_module_names)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "['coatcheck']"


def test_the_plugin_can_be_asked_without_a_command_line_of_ours() -> None:
    done = subprocess.run([sys.executable, "-m", "coatcheck.gpu.vllm"], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert json.loads(done.stdout)["vllm"] is None


TRANSFORMERS = """
class PreTrainedConfig:
    read = {"text_config": {"layer_types": ["linear_attention", "qwen_sparse_attention"]}, "layer_types": None}

    @classmethod
    def get_config_dict(cls, name):
        return cls.read, {}
"""


@pytest.mark.parametrize(("named", "kind"), [(None, "qwen_sparse"), (["coatcheck"], "qwen_sparse"), ([NAME], "full")])
def test_sparse_attention_is_called_full_only_where_it_is_asked_for_by_name(
    named: list[str] | None, kind: str, installed: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(installed, {"vllm.envs": f"VLLM_PLUGINS = {named!r}\n", "transformers.configuration_utils": TRANSFORMERS})
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)

    with caplog.at_level(logging.INFO):
        plugin.register()
        plugin.register_sparse_as_full()
        plugin.register_sparse_as_full()
        for _ in range(3):
            found, _ = importlib.import_module("transformers.configuration_utils").PreTrainedConfig.get_config_dict("model")

    assert found["text_config"]["layer_types"] == ["linear_attention", f"{kind}_attention"]
    assert caplog.text.count("does not prove") == (kind == "full")
    assert ("does nothing" in caplog.text) == (kind != "full")


def test_a_vllm_that_cannot_be_asked_survives_the_plugin(installed: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(installed, {"vllm.envs": "raise RuntimeError('no settings')\n"})

    plugin.register_sparse_as_full()

    assert "coatcheck changes nothing here: RuntimeError" in caplog.text
