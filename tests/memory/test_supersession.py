"""Superseded-by on made pairs: precision first, since a wrong one would teach the agent to doubt what stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from coatcheck.memory.supersession import Said, find_superseding

SESSION = UUID(int=1)
DAY = datetime(2026, 11, 1, tzinfo=UTC)

CORRECTED = [
    ("The staging gateway listens on port 8443.", "Correction: the staging gateway listens on port 9443, not on 8443."),
    ("Deploy api-gateway with chart 4.2.0.", "Use chart 4.3.1 for api-gateway instead of 4.2.0, the old one is broken."),
    ("The owner of the billing-export job is Irina.", "The billing-export job is no longer Irina's, its owner is Pavel now."),
    (
        "Database for sessions: MySQL, decided on Monday.",
        "Decision revised: the database for sessions is PostgreSQL, MySQL is out.",
    ),
    ("Порт шлюза на стейджинге 8443.", "Исправление: порт шлюза на стейджинге теперь 9443."),
    ("Резервная копия делается в 03:00 скриптом backup_night.sh", "Вместо backup_night.sh резервная копия делается backup_all.sh."),
    ("发布分支是 release-2.1，由 wang.fang 维护。", "更正：发布分支改为 release-2.2，由 wang.fang 维护，release-2.1 不再使用。"),
    ("Set pool_size=20 in settings.toml.", "pool_size in settings.toml was changed from 20 to 40 after the load test."),
]
UNRELATED = [
    ("The staging gateway listens on port 8443.", "Correction: the spelling of Irina's surname is Kovaleva."),
    ("Deploy api-gateway with chart 4.2.0.", "The worker deployment uses chart 4.2.0 as well."),
    ("The tests passed in 41 s.", "Correction: the meeting is on Tuesday."),
    ("Run restart_the_db before the migration.", "restart_the_db finished with status 0 in 12 s."),
    ("Порт шлюза на стейджинге 8443.", "Исправление: встреча во вторник."),
    ("The invoice template lives in templates/invoice.html.", "We no longer send paper letters to customers."),
    ("Search index rebuild takes 40 minutes.", "Instead of lunch we met at four."),
    ("GET /health returned 200 in 12 ms", "GET /health returned 200 in 13 ms"),
    ("The secret for webhooks is rotated monthly.", "Actually, the coffee machine is repaired."),
    ("发布分支是 release-2.1。", "更正：会议改到周二。"),
]


def said(name: str, text: str, day: int, session: UUID = SESSION) -> Said:
    return Said(session, name, UUID(int=day + 1), DAY + timedelta(days=day), text)


def marked(earlier: str, later: str) -> bool:
    pool = [said("earlier", earlier, 0), said("later", later, 1)]
    return (SESSION, "earlier") in find_superseding(pool, pool)


def test_precision_on_made_pairs_is_at_least_095_and_most_corrections_are_found() -> None:
    found = [pair for pair in CORRECTED if marked(*pair)]
    wrong = [pair for pair in UNRELATED if marked(*pair)]

    assert len(found) / (len(found) + len(wrong)) >= 0.95, wrong
    assert len(found) >= len(CORRECTED) - 2, [pair for pair in CORRECTED if pair not in found]


def test_an_earlier_segment_never_supersedes_a_later_one() -> None:
    pool = [said("first", CORRECTED[0][1], 0), said("second", CORRECTED[0][0], 1)]

    assert find_superseding(pool, pool) == {}


def test_another_session_corrects_nothing() -> None:
    pool = [said("earlier", CORRECTED[0][0], 0), said("later", CORRECTED[0][1], 1, UUID(int=2))]

    assert find_superseding(pool, pool) == {}


def test_it_names_the_newest_correction() -> None:
    pool = [said("earlier", CORRECTED[0][0], 0), said("one", CORRECTED[0][1], 1), said("two", CORRECTED[0][1] + " Again.", 2)]

    assert find_superseding(pool[:1], pool)[SESSION, "earlier"].sha256 == "two"


def test_boilerplate_that_many_share_is_no_subject() -> None:
    footer = " Previous run finished, rounding took_ms=40, ask anybody at the desk."
    records = [
        said("retention", "Images from the yard scanners are retained for 30 days, job purge_yard_images." + footer, 0),
        said("release", "Release of firmware 2.8.4 for the yard gate." + footer, 1),
        said("runbook", "Runbook: rebooting a parcel router." + footer, 2),
        said("rota", "Rota of the night shift at depot north." + footer, 3),
    ]
    later = said("note", "Correction: purge_yard_images keeps yard scanners images for 14 days now." + footer, 9)

    found = find_superseding(records, [*records, later])

    assert {key[1] for key in found} == {"retention"}
    assert found[SESSION, "retention"].sha256 == "note"
