"""A message's parts stand at their sites, whatever else in the message says the same."""

from __future__ import annotations

import pytest

from coatcheck.domain.canonical import JsonValue, to_text
from coatcheck.domain.messages import PartKind, Site, assemble, frame

TEXT = "user"


def site(*path: str | int) -> Site:
    return Site(path, PartKind.TEXT, "string", "user")


@pytest.mark.parametrize("at_hand", [True, False])
@pytest.mark.parametrize(
    ("message", "sites", "frames"),
    [
        ({"role": "user", "content": TEXT}, [site("content")], ['{"role":"user","content":', "}"]),
        ({"content": TEXT, "role": "user"}, [site("content")], ['{"content":', ',"role":"user"}']),
        ({"content": TEXT, "more": [TEXT]}, [site("content"), site("more", 0)], ['{"content":', ',"more":[', "]}"]),
        ({"content": [TEXT] * 6}, [site("content", at) for at in range(6)], ['{"content":[', ",", ",", ",", ",", ",", "]}"]),
        (
            {"note": '"\ud800"', "content": "\ud800", "user": None},
            [site("content")],
            ['{"note":"\\"\ud800\\"","content":', ',"user":null}'],
        ),
        ({"content": ""}, [site("content")], ['{"content":', "}"]),
        (TEXT, [site()], ["", ""]),
    ],
)
def test_each_part_is_framed_by_what_stands_before_it(
    message: JsonValue, sites: list[Site], frames: list[str], at_hand: bool
) -> None:
    parts = frame(message, sites, to_text(message) if at_hand else None)

    assert [part.frame_before for part in parts] + [parts[-1].frame_after] == frames
    assert assemble(parts) == to_text(message)
