"""How a client finds its service and its key when it is given neither: the environment, then the data directory.

A variable that is empty counts as one that is not set. The service writes both files: ``run.json`` ({"url": ...}, while it serves)
and ``local.key`` (mode 0600, the key of the local tenant's first principal). The local key goes to the service of the same data
directory only, never to another URL.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx
import platformdirs

from coatcheck_client.errors import NoServiceConfigured

RUN_FILE = "run.json"
KEY_FILE = "local.key"
_KEY = re.compile(r"[!-~]+")
_SPACE = re.compile(r"\s")
_ROUTE = re.compile(r"/+(v1(/(compactions|recall))?|mcp|livez|readyz)/*$")
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True, slots=True)
class Location:
    """Where a service is and what opens it."""

    url: str
    api_key: str | None


def data_dir(environment: Mapping[str, str] | None = None) -> Path:
    """COATCHECK_DATA_DIR, or the user's data directory; root's is the machine's, as the service has it."""
    names = os.environ if environment is None else environment  # noqa: TID251
    if configured := names.get("COATCHECK_DATA_DIR"):
        return Path(configured).expanduser()
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return Path("/var/lib/coatcheck" if is_root else platformdirs.user_data_dir("coatcheck"))


def is_data_dir_configured(environment: Mapping[str, str] | None = None) -> bool:
    """Whether COATCHECK_DATA_DIR is set."""
    return bool((os.environ if environment is None else environment).get("COATCHECK_DATA_DIR"))  # noqa: TID251


def configured_url(environment: Mapping[str, str] | None = None) -> str | None:
    """COATCHECK_URL; null where it is not set."""
    return (os.environ if environment is None else environment).get("COATCHECK_URL") or None  # noqa: TID251


def configured_key(environment: Mapping[str, str] | None = None) -> str | None:
    """COATCHECK_API_KEY; null where it is not set."""
    return (os.environ if environment is None else environment).get("COATCHECK_API_KEY") or None  # noqa: TID251


def locate(
    url: str | None = None,
    api_key: str | None = None,
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Location:
    """The service to talk to. Raises NoServiceConfigured where none is named by a usable URL and none runs here."""
    names = os.environ if environment is None else environment  # noqa: TID251
    directory = directory or data_dir(names)
    running = running_url(directory)
    url = url or configured_url(names) or running
    if url is None:
        raise NoServiceConfigured(
            "no service: set COATCHECK_URL (and COATCHECK_API_KEY), or start one with `coatcheck serve --embedded`"
        )
    if not _is_usable(url):
        raise NoServiceConfigured("the service's URL (COATCHECK_URL) has to begin with http:// or https:// and a host")
    if _has_too_much(url):
        raise NoServiceConfigured(
            f"the service's URL (COATCHECK_URL) says too much: write {_without_routes(url)}, to which the client adds the routes"
        )
    api_key = api_key or configured_key(names)
    if api_key is None and running is not None and _is_usable(running) and _same_place(url, running):
        api_key = local_key(directory)
    if api_key is not None and not _KEY.fullmatch(api_key):
        raise NoServiceConfigured("the key (COATCHECK_API_KEY) is none: it holds spaces, line ends or letters that no key has")
    return Location(url.rstrip("/"), api_key)


def running_url(directory: Path) -> str | None:
    """The URL in the data directory's run.json; null where there is none. The service may have died without removing it."""
    try:
        content = json.loads((directory / RUN_FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    url = content.get("url") if isinstance(content, dict) else None
    return url if isinstance(url, str) else None


def local_key(directory: Path) -> str | None:
    """The local key that the service left in the data directory; null where there is none or it is not ours to read."""
    try:
        return (directory / KEY_FILE).read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


def _is_usable(url: str) -> bool:
    try:
        parts, read = urlsplit(url), httpx.URL(url)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname and read.host) and parts.port != 0 and not _SPACE.search(url)
        )
    except (ValueError, httpx.InvalidURL):
        return False


def _has_too_much(url: str) -> bool:
    """A path may be a proxy's, below which the service is. It ends with no route of the service, and nothing follows it."""
    parts = urlsplit(url)
    return bool(parts.query or parts.fragment or _ROUTE.search(parts.path))


def _without_routes(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]  # a password is nothing to repeat
    return urlunsplit((parts.scheme, host, _ROUTE.sub("", parts.path), "", "")).rstrip("/")


def _same_place(one: str, other: str) -> bool:
    a, b = urlsplit(one), urlsplit(other)
    hosts_agree = a.hostname == b.hostname or {a.hostname, b.hostname} <= _LOOPBACK
    return hosts_agree and (a.scheme, a.port) == (b.scheme, b.port)
