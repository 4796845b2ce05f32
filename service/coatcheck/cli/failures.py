"""What a command says of an error: one line, a line for each further place, and what to do next where that is known."""

from __future__ import annotations

from collections.abc import Sequence

NEXT_STEPS = {
    "TranscriptError": "`coatcheck compact --help` says what is read",
    "Unauthenticated": "set COATCHECK_API_KEY; a service on this machine leaves its first key in local.key of its data directory",
    "NotFound": (
        "a name means a session of your own; `coatcheck sessions list` shows the ids that you may use, "
        "as `list` of principals, teams, keys and tenants does"
    ),
}


def failure_text(error: Exception) -> str | None:
    """For an error that a user can do something about; null for a fault of ours."""
    from coatcheck.domain.errors import CoatcheckError
    from coatcheck_client.errors import ClientError, ProblemError

    if isinstance(error, ProblemError):
        places = [(place.get("pointer", ""), place.get("detail", "")) for place in error.errors]
        # A detail is a sentence of its own, unless it begins with the place that it is about.
        said = f"{error.title}: {error.detail}" if error.detail.startswith("/") else error.detail or error.title
    elif isinstance(error, CoatcheckError):
        places = [(place.pointer, place.detail) for place in error.errors]
        said = error.detail
    elif isinstance(error, ClientError):
        places, said = [], str(error)
    elif isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        return None
    step = _below_a_path(error) or NEXT_STEPS.get(type(error).__name__)
    return said + (f" ({step})" if step else "") + _further(places, said)


def _below_a_path(error: Exception) -> str | None:
    """For an answer that may be another's: what is wrong with the path may be what was asked for below it, or the path."""
    from urllib.parse import urlsplit

    from coatcheck_client.discovery import configured_url
    from coatcheck_client.errors import NotFound, UnexpectedAnswer

    path = urlsplit(configured_url() or "").path.rstrip("/")
    if not path or not isinstance(error, NotFound | UnexpectedAnswer):
        return None
    return f"COATCHECK_URL has the path {path}: nothing is found where the service is not below it"


def _further(places: Sequence[tuple[str, str]], said: str) -> str:
    """The places of which the sentence does not say the same already."""
    return "".join(f"\n  {pointer}: {detail}" for pointer, detail in places if detail.rstrip(".") not in said)
