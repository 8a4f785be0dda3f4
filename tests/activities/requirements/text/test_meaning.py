"""Statements held against their quotes, and against each other."""

import pytest

from activities.requirements.text.candidate_sentences import Force
from activities.requirements.text.imperatives import find_imperative
from activities.requirements.text.meaning import compare_statements, statement_faults


@pytest.mark.parametrize(
    ("text", "modality"),
    [
        ("Verify that passwords have twelve characters.", "obligation"),
        ("Develop, document and disseminate a policy.", "obligation"),
        ("Uniquely identify and authenticate users.", "obligation"),
        ("Control: Retain audit records for a year.", "obligation"),
        ("Record time stamps for audit records that meet the standard.", "obligation"),
        ("When users create passwords, verify that they are long.", "obligation"),
        ("Photograph the scene before you leave it.", "obligation"),
        ("Do not store passwords in clear text.", "prohibition"),
        ("Verwenden Sie nur freigegebene Geräte.", "obligation"),
        ("Zugänge jährlich prüfen.", "obligation"),
        ("Verify the following: All keys are kept in a safe.", "obligation"),
        ("AC-2 \u2013 Manage accounts of all users.", "obligation"),
        ("Record keeping is a duty of all.", None),
        ("Access tokens are short-lived.", None),
        ("Use of the system is free of charge.", None),
        ("Note: Audit records are kept elsewhere.", None),
        ("Since the year is over, books are closed.", None),
        ("Daten, die die Systeme betreffen.", None),
        ("Verify that it works?", None),
    ],
)
def test_orders(text: str, modality: str | None) -> None:
    order = find_imperative(text, item=True)
    assert (order.modality if order else None) == modality


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("The contrast must be at least 4.5:1.", "The contrast must be at least 7:1.",
         "differs in: 4.5:1 / 7:1"),
        ("Logs must be stored in clear text.", "Logs must not be stored in clear text.",
         "contradicts? without not / not"),
        ("Logs must be kept for 90 days.", "Logs must be kept for 365 days.",
         "differs in: 90 days / 365 days"),
        ("Users should change passwords.", "Users must change passwords.",
         "differs in: should / must"),
        ("Hash with SHA-256 only.", "Hash with SHA-512 only.", "differs in: sha-256 / sha-512"),
        ("The controller must tell the authority.", "The processor must tell the authority.",
         "differs in: controller / processor"),
        ("Logs must be kept for 90 days.", "Logs shall be kept for ninety days.", ""),
        ("Die Frist beträgt zehn Jahre.", "Die Frist beträgt 10 Jahre.", ""),
    ],
)  # fmt: skip
def test_likeness_alone_is_no_duplicate(one: str, other: str, said: str) -> None:
    difference = compare_statements(one, other)
    assert (str(difference) if difference else "") == said


@pytest.mark.parametrize(
    ("text", "force", "passage", "fault"),
    [
        ("Logs must be kept for 365 days.", None, "Logs must be kept for 90 days.", "365 days"),
        ("Answer within 24 hours.", None, "Answer within 24 days.", "24 hours, and they say"),
        ("Logs are kept.", "must", "Logs should be kept.", "that it is a must"),
        ("Passwords must be kept.", None, "Passwords must not be kept.", "it without not"),
        ("Passwords must not be kept.", None, "Passwords must be kept.", "not, and they do not"),
        ("Use TLS1.3 for it.", None, "Use TLS1.2 for it.", "tls1.3"),
        ("Only admins may enter.", None, "Entry must be limited to admins.", ""),
        ("Entry must be limited to admins.", None, "Only admins may enter.", ""),
        ("Invoices must be kept for ten years.", "must",
         "Rechnungen sind 10 Jahre aufzubewahren.", ""),
        ("6.2.1: Verify that rules are kept.", "must", "Verify that rules are kept.", ""),
        ("By § 257 books must be kept.", "must", "Books must be kept.", ""),
        # A number may be one of the quote in another unit.
        ("Report within 3 days.", None, "Report within 72 hours.", ""),
        ("Answer within 2000ms.", None, "Answer within 2 s.", ""),
        ("Review access every 12 months.", None, "Zugriffe sind j\u00e4hrlich zu sichten.", ""),
        ("Keep it below 77 \u00b0F.", None, "Keep it below 25 \u00b0C.", ""),
        ("Two wings for doors above 200 cm.", None, "Doors above 2 m have two wings.", ""),
        ("Guests leave by 6 pm.", None, "Guests leave by 18:00.", ""),
        ("The contrast must be 7:1.", None, "The contrast must be 4.5:1.", "7:1"),
        ("Encrypt with 256-bit AES.", None, "Encrypt with AES-256.", ""),
        ("Encrypt with AES256.", None, "Encrypt with AES-256.", ""),
        ("Logs must be kept for 365 days.", None, "Logs must be kept for ninety days.", "365 days"),
        ("Logs must be kept for 90 days.", None, "Logs must be kept.", "90 days"),
        ("Rooms must have 14 seats.", None, "Rooms must have 12 seats each day.", "14"),
        # A negation may say the same in other words.
        ("Doors must not be left open.", None, "Doors shall stay closed.", ""),
        ("Passwords must be kept secret.", None, "Passwords must not be told to others.", ""),
        ("All of it must be so.", None, "Books must be kept.", "nothing"),
    ],
)  # fmt: skip
def test_a_statement_says_what_its_quote_says(
    text: str, force: Force | None, passage: str, fault: str
) -> None:
    faults = statement_faults(text, force, passage, "documents/a.md 6.2.1")
    assert bool(faults) == bool(fault)
    assert fault in "; ".join(faults)
