"""Where settings come from: the environment and one file that somebody named, or that lies with the data; nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from coatcheck.domain.errors import RefusedToStart
from coatcheck.settings import Settings, load, unread_file


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


def settings_file(at: Path, *lines: str) -> Path:
    at.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    at.chmod(0o600)
    return at


def test_a_file_of_the_working_directory_is_not_read_and_is_named(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = settings_file(tmp_path / ".env", "COATCHECK_LISTEN_PORT=1", "COATCHECK_DATABASE_URL=postgresql://elsewhere")
    monkeypatch.chdir(tmp_path)

    settings = load({}, data_dir=data_dir)

    assert (settings.listen_port, settings.database_url) == (8717, None)
    assert unread_file() == planted


def test_a_file_of_somebody_elses_settings_is_not_spoken_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_file(tmp_path / ".env", "DJANGO_DEBUG=1")
    monkeypatch.chdir(tmp_path)

    assert unread_file() is None


def test_the_file_that_is_named_is_read_and_may_name_the_data_directory(tmp_path: Path, data_dir: Path) -> None:
    file = settings_file(tmp_path / "mine.env", "COATCHECK_LISTEN_PORT=1", f"COATCHECK_DATA_DIR={data_dir}")

    by_name, by_option = load({"COATCHECK_ENV_FILE": str(file)}), load({}, file)

    assert (by_name.listen_port, by_name.data_dir) == (1, data_dir)
    assert by_option == by_name


def test_the_data_directorys_own_file_is_read_where_none_is_named(tmp_path: Path, data_dir: Path) -> None:
    settings_file(data_dir / "coatcheck.env", "COATCHECK_LISTEN_PORT=2")
    named = settings_file(tmp_path / "mine.env", "COATCHECK_LISTEN_PORT=3")

    assert load({"COATCHECK_DATA_DIR": str(data_dir)}, data_dir=data_dir).listen_port == 2
    assert load({}, named, data_dir=data_dir).listen_port == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [("COATCHECK_LISTEN_PROT=1", "COATCHECK_LISTEN_PORT?"), ("COATCHECK_DATA_DIR=/elsewhere", "cannot name another one")],
)
def test_what_has_no_place_in_the_data_directorys_file_refuses_to_start(data_dir: Path, line: str, reason: str) -> None:
    settings_file(data_dir / "coatcheck.env", line)

    with pytest.raises(RefusedToStart) as refused:
        load({}, data_dir=data_dir)

    assert reason in refused.value.detail


def test_a_named_file_that_is_not_there_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(RefusedToStart, match="is not there"):
        load({"COATCHECK_ENV_FILE": str(tmp_path / "none.env")})


def test_a_file_that_others_can_write_refuses_to_start(data_dir: Path) -> None:
    settings_file(data_dir / "coatcheck.env", "COATCHECK_LISTEN_PORT=2").chmod(0o620)

    with pytest.raises(RefusedToStart, match="chmod go-w"):
        load({}, data_dir=data_dir)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COATCHECK_LEASE_S", "inf"),
        ("COATCHECK_LEASE_S", "nan"),
        ("COATCHECK_LEASE_S", "1e300"),
        ("COATCHECK_STAGE_LIMIT_S", "0"),
        ("COATCHECK_MAX_DEADLINE_S", "-1"),
        ("COATCHECK_TENANT_REQUESTS_PER_MINUTE", "5e-324"),
        ("COATCHECK_TENANT_BYTES_PER_MINUTE", "inf"),
        ("COATCHECK_TENANT_MAX_SEGMENTS", "-1"),
        ("COATCHECK_ROUTER_BUCKETS", "64,,128"),
        ("COATCHECK_ROUTER_BUCKETS", "0"),
        ("COATCHECK_ROUTER_BUCKETS", "64, 128"),
    ],
)
def test_a_number_that_nothing_can_be_reckoned_with_refuses_to_start(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(RefusedToStart) as refused:
        load(data_dir=data_dir)

    assert name in refused.value.detail


def test_an_empty_value_is_none_for_every_setting(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = dict.fromkeys((f"COATCHECK_{name.upper()}" for name in Settings.model_fields), "")
    file = settings_file(tmp_path / "mine.env", *(f"{name}=" for name in empty))
    for name in empty:
        monkeypatch.delenv(name, raising=False)
    unset = load({})
    from_file = load({}, file)
    for name in empty:
        monkeypatch.setenv(name, "")

    assert load() == unset
    assert from_file == unset


def test_an_empty_value_leaves_what_the_file_says(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_file(data_dir / "coatcheck.env", "COATCHECK_LISTEN_PORT=2", "COATCHECK_DATA_DIR=")
    monkeypatch.setenv("COATCHECK_LISTEN_PORT", "")

    assert load(data_dir=data_dir).listen_port == 2


def test_an_empty_value_of_an_unknown_name_is_still_a_slip(data_dir: Path) -> None:
    with pytest.raises(RefusedToStart, match="LISTEN_PROT"):
        load({"COATCHECK_LISTEN_PROT": ""}, data_dir=data_dir)


def test_a_length_that_is_named_twice_is_refused_by_the_settings_name(data_dir: Path) -> None:
    assert load({}, data_dir=data_dir, router_buckets="64,128").router_buckets == "64,128"

    with pytest.raises(RefusedToStart, match="COATCHECK_ROUTER_BUCKETS"):
        load({}, data_dir=data_dir, router_buckets="64,128,64")
