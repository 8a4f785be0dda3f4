"""Requirement candidates: found, told apart, and citable where they are said to stand."""

import time
from collections import Counter
from pathlib import Path

import pytest

from activities.documents.pages import Page, find_page
from activities.documents.quotes import contains_quote
from activities.requirements.text.candidate_sentences import identify_candidates
from activities.text.indicators import shipped_indicators
from tests.document_pages import read_document_pages
from tests.soak import patient

POLICY = Path(__file__).parents[4] / "examples/documents/records-policy.md"
HYDRO = "pypdf-7.1.0/resources/GeoBase_NHNC1_Data_Model_UML_EN.pdf"


def one(text):
    [candidate] = identify_candidates([Page(1, text)])
    return candidate


@pytest.fixture(scope="module")
def policy():
    pages = read_document_pages(POLICY.name, POLICY.read_bytes())
    return pages, identify_candidates(pages)


@pytest.mark.parametrize(
    ("text", "language", "modality"),
    [
        ("Invoices must be kept for ten years.", "en", "obligation"),
        ("The supplier has to confirm the order.", "en", "obligation"),
        ("Every user is required to sign in.", "en", "obligation"),
        ("The system must have a backup.", "en", "obligation"),
        ("Records must not only be kept but also be readable.", "en", "obligation"),
        ("Records must not be altered after filing.", "en", "prohibition"),
        ("Access to the vault is prohibited.", "en", "prohibition"),
        ("Employees may not share passwords.", "en", "prohibition"),
        ("The report should name its sources.", "en", "recommendation"),
        ("Employees may read their own records.", "en", "permission"),
        ("Departments need not keep a copy.", "en", "permission"),
        ("Children may enter only with an adult.", "en", "prohibition"),
        ("A reader may have at most five items.", "en", "prohibition"),
        ("Only staff may enter the vault.", "en", "prohibition"),
        ("Users may not only read but also write.", "en", "permission"),
        ("Der Inhalt darf nur von Befugten gelesen werden.", "de", "prohibition"),
        ("Die Belege müssen vollständig sein.", "de", "obligation"),
        ("Der Verantwortliche hat die Daten unverzüglich zu löschen.", "de", "obligation"),
        ("Rechnungen sind zehn Jahre aufzubewahren.", "de", "obligation"),
        ("Die Leitung ist verpflichtet, den Vorfall zu melden.", "de", "obligation"),
        ("Die Daten müssen nicht nur lesbar, sondern auch auswertbar sein.", "de", "obligation"),
        ("Buchungen dürfen im Nachhinein nicht verändert werden.", "de", "prohibition"),
        ("Ohne Freigabe dürfen keine Belege gelöscht werden.", "de", "prohibition"),
        ("Die Weitergabe an Dritte ist untersagt.", "de", "prohibition"),
        ("Kasseneinnahmen sollen täglich erfasst werden.", "de", "recommendation"),
        ("Der Bericht sollte Quellen nennen.", "de", "recommendation"),
        ("Beschäftigte dürfen eigene Akten einsehen.", "de", "permission"),
    ],
)
def test_modality(text, language, modality):
    candidate = one(text)
    assert (candidate.text, candidate.language, candidate.modality) == (text, language, modality)


@pytest.mark.parametrize(
    "text",
    [
        "The file must have been lost in the move.",
        "The audit takes place in May 2024 in both offices.",
        "Should you have questions, the service desk will help.",
        "A good backup is a must-have of any archive.",
        "It grew mustard and shallots for years.",
        "Die Sitzungen sind zu allen Themen offen.",
        "Der Ordner muss damals schon leer gewesen sein.",
        "# What every employee must know",
        "Readers are not required to sign, and the desk doesn't need to ask.",
        "A cover sheet is no longer required.",
        "Die Leser sind nicht verpflichtet, den Bogen zu unterschreiben.",
        "Änderungen an Hardware und Funkplanung aktualisieren den Plan im selben Prozess.",
        "Access Points und Antennen werden in Bereichen montiert, die nur wenigen offen sind.",
        "Copyright \u00a9 2008-2025 The Foundation of all readers.",
        "Design Verification \u2013 The technical assessment of the security of an application.",
        "TURN servers assist in relaying media in restrictive network environments.",
        "They have event types that are required by applicable laws.",
        "Example:\n\n```\nthe value must be set here\n```\n\nEnd of example.",
    ],
)
def test_what_only_looks_like_a_requirement(text):
    assert identify_candidates([Page(1, text)]) == []


def test_regulations_and_indicators():
    candidate = one("Personal data must be erased under Art. 17 GDPR as soon as possible.")
    assert candidate.regulation == ["GDPR"]
    assert candidate.indicators == ["must", "Personal data", "GDPR"]
    candidate = one("Die Nachvollziehbarkeit der Belege ist nach GoBD sicherzustellen.")
    assert candidate.regulation == ["GoBD"]
    assert candidate.indicators[0] == "ist \u2026 sicherzustellen"


def test_abbreviations_do_not_end_sentences():
    text = (
        "Daten sind gem. Art. 17 Abs. 1 DSGVO, d. h. sofort, zu löschen. Das gilt ab dem 1. Mai. "
        "Belege müssen z. B. Rechnungen i. S. d. UStG sein."
    )
    assert [c.text for c in identify_candidates([Page(1, text)])] == [
        "Daten sind gem. Art. 17 Abs. 1 DSGVO, d. h. sofort, zu löschen.",
        "Belege müssen z. B. Rechnungen i. S. d. UStG sein.",
    ]
    text = "Tools (e.g. Scanners by Acme Inc. or others) must follow Sec. 5. They are listed."
    assert one(text).text.endswith("must follow Sec. 5.")


def test_hyphen_that_stands_for_a_later_word_stays():
    page = (
        "Der Kaufmann muss Ein-\nund Ausgangsrechnungen nach den Buchführungs-\nund Aufzeich-\n"
        "nungspflichten in einem Cross\u2011\nborder Archiv aufbewahren."
    )
    text = one(page).text
    assert text == (
        "Der Kaufmann muss Ein- und Ausgangsrechnungen nach den Buchführungs- und "
        "Aufzeichnungspflichten in einem Cross\u2011border Archiv aufbewahren."
    )
    assert contains_quote(page, text)


def test_list_items_take_the_demand_of_the_sentence_before():
    text = "The log must contain:\n- the time of the entry;\n- the user of it.\n\nLogs are short."
    lead, *items = identify_candidates([Page(1, text)])
    assert [item.text for item in items] == ["the time of the entry;", "the user of it."]
    assert {item.modality for item in items} == {"obligation"}
    assert all(item.binds and item.lead_in == lead.text for item in items)


def test_headings_and_footnotes_are_no_part_of_a_sentence():
    pages = [
        Page(
            1,
            "2.1 Keeping\n2.1.1 The archive\nThe archive is the place of all records of the house "
            "and\nof its branches. Every record must be kept.1 It must be legible2 and\n"
            "must be found by\n1 As the board said.\n2 A copy must be legible as well, whoever "
            "makes it\nand for whatever reason.",
        ),
        Page(2, "everybody.\nAccess Control\nThe door must be locked at night by the porter."),
    ]
    assert [(c.page, c.section, c.text) for c in identify_candidates(pages)] == [
        (1, "2.1.1", "Every record must be kept."),
        (1, "2.1.1", "It must be legible2 and must be found by"),
        (1, "2.1.1", "A copy must be legible as well, whoever makes it and for whatever reason."),
        (2, "2.1.1", "The door must be locked at night by the porter."),
    ]


def test_marks_of_several_notes_end_a_sentence():
    text = "The log must be kept.12,15\u201317 It must be legible. Rule 3.1 must hold."
    assert [c.text for c in identify_candidates([Page(1, text)])] == [
        "The log must be kept.",
        "It must be legible.",
        "Rule 3.1 must hold.",
    ]


def test_marks_of_notes_in_brackets_are_no_part_of_a_sentence():
    pages = [Page(1, "Books must be kept.[1][ii] It is so.\n\n[1] Drafts must be kept as well.")]
    assert [candidate.text for candidate in identify_candidates(pages)] == [
        "Books must be kept.",
        "Drafts must be kept as well.",
    ]


def test_the_last_item_of_a_list_is_no_foot_of_its_page():
    text = "Of the archive\n\n1. Logs must be kept\n\n2. Doors must be locked"
    assert [c.text for c in identify_candidates([Page(1, text)])] == [
        "Logs must be kept",
        "Doors must be locked",
    ]


def test_a_table_of_numbers_takes_time_by_its_length():
    begun = time.process_time()
    lines = "\n".join(f"{n} the value of cell{n} is so" for n in range(1, 30_000))
    assert identify_candidates([Page(1, f"A log must be kept.\n{lines}")])
    assert time.process_time() - begun < patient(3)


def test_terms_and_broken_lines_are_kept_apart():
    text = (
        "There are three kinds of fields, and each of them has its own rules for the lines:\n"
        "simple\nThe field, including its value, must be a single line and no other one.\n\n"
        "build-arch (required), build-indep (required)\nThe target must follow what is "
        "said in annex\nb. It should be quiet.14 flags must be small."
    )
    assert [c.text for c in identify_candidates([Page(1, text)])] == [
        "The field, including its value, must be a single line and no other one.",
        "The target must follow what is said in annex b. It should be quiet.",
        "flags must be small.",
    ]


def test_a_number_that_begins_a_line_is_no_footnote_without_its_mark():
    text = (
        "The room has many doors, and each of them must be\n4 metres high. The walls must be at "
        "least\n5 metres high."
    )
    assert [c.text for c in identify_candidates([Page(1, text)])] == [
        "The room has many doors, and each of them must be 4 metres high.",
        "The walls must be at least 5 metres high.",
    ]


def test_what_leads_over_to_a_list_is_no_heading():
    text = (
        "There are two fields of this kind, and each of them has its own rules for it.\n"
        "Breaks should be used\n\u2022 when a file is moved from one package to another,\n"
        "\u2022 as a workaround."
    )
    lead, *items = identify_candidates([Page(1, text)])
    assert lead.text == "Breaks should be used"
    assert [(item.form, item.lead_in) for item in items] == [("item", lead.text)] * 2
    text = text.replace("used\n", "used\n\n").replace("Breaks", "All Conflicts")
    assert identify_candidates([Page(1, text)])[0].text == "All Conflicts should be used"
    title = text.replace("All Conflicts should be used", "What Readers Should Know")
    assert identify_candidates([Page(1, title)]) == []


def test_a_bar_within_a_sentence_parts_no_cells():
    text = (
        "It is so.\n\nA package must depend on mta | agent where it sends mail.\n\nOthers need not."
    )
    texts = [candidate.text for candidate in identify_candidates([Page(1, text)])]
    assert texts[0] == "A package must depend on mta | agent where it sends mail."


@pytest.mark.parametrize(
    "table",
    [
        "Name | Rule\n\nDoor | It must be locked.\n\nLamp | It must be out.",
        "| Door | It must be locked. |\n\nIt is so.\n\n| Lamp | It must be out. |",
        "Name | Rule\n---|---\nDoor | It must be locked.\nLamp | It must be out.",
    ],
)
def test_each_cell_of_a_table_stands_for_itself(table):
    texts = [candidate.text for candidate in identify_candidates([Page(1, table)])]
    assert texts == ["It must be locked.", "It must be out."]


def test_entries_of_a_table_of_contents_are_no_candidates():
    contents = "\u2022 Epochs should be used sparingly\n\n\u2022 Names\n\nA name must be unique."
    body = "5.6.1. Epochs should be used sparingly\n\nThe epoch should be left out."
    pages = [Page(1, contents), Page(2, body, sections=["5.6.1. Epochs should be used sparingly"])]
    texts = [candidate.text for candidate in identify_candidates(pages)]
    assert texts == ["A name must be unique.", "The epoch should be left out."]


def test_sections_come_from_the_headings():
    text = (
        "# Rules\n\nA log must be kept.\n\n## 2. Access\n\nDoors must be locked.\n\n"
        "\u00a7 147 Aufbewahrung\n\nBelege m\u00fcssen lesbar sein.\n\n"
        "3.2 The supplier must answer within\n2.5 days."
    )
    assert [(c.section, c.text) for c in identify_candidates([Page(1, text)])] == [
        ("Rules", "A log must be kept."),
        ("2", "Doors must be locked."),
        ("\u00a7 147", "Belege m\u00fcssen lesbar sein."),
        ("3.2", "The supplier must answer within 2.5 days."),
    ]


def test_a_line_at_the_foot_of_a_few_pages_in_a_row_runs_along():
    words = ["porter", "clerk", "cook", "guard", "nurse", "judge", "pilot", "baker"]
    bodies = [f"The log must be kept by the {word} of the house, who" for word in words]
    pages = [
        Page(n, f"{body}\n\n{n}\n\n{'Chapter 2. What must be done' if n > 5 else ''}")
        for n, body in enumerate(bodies, 1)
    ]
    pages.append(Page(9, "The end of the book.\n\n4. What must be known\n\n9"))
    assert [c.text for c in identify_candidates(pages)] == bodies


def test_sentence_over_a_page_end_belongs_to_its_first_page():
    pages = [
        Page(1, "Manual of Filing\nEvery record of the company that is older than ten\n1"),
        Page(2, "Manual of Filing\nyears must be reviewed. It may be destroyed.\n2"),
        Page(3, "Manual of Filing\nThe end of it.\n3"),
    ]
    first, second = identify_candidates(pages)
    assert (first.page, first.text) == (1, "Every record of the company that is older than ten")
    assert first.rest == "years must be reviewed."
    assert first.modality == "obligation"
    assert (second.page, second.text) == (2, "It may be destroyed.")


def test_a_foot_that_ends_with_the_number_of_the_page_parts_no_sentence():
    pages = [
        Page(91, "Other text.\n\nWhoever chooses a name\n\n9.2. Users and groups 81", label="81"),
        Page(92, "for packages must add an underscore.", label="82"),
    ]
    [candidate] = identify_candidates(pages)
    assert (candidate.page, candidate.text) == (91, "Whoever chooses a name")
    assert candidate.rest == "for packages must add an underscore."


def test_a_line_that_ends_with_a_joining_word_is_no_heading():
    text = (
        "Others stand here, in a line that is as long as those of this text are, and it ends.\n"
        "The Build-Depends, Build-Conflicts, and\n"
        "Build-Conflicts-Indep fields must be satisfied when these targets are invoked."
    )
    [candidate] = identify_candidates([Page(1, text)])
    assert candidate.text.startswith(
        "The Build-Depends, Build-Conflicts, and Build-Conflicts-Indep"
    )


def test_long_sentence_is_cut_between_words():
    candidate = one("Each of them must be kept, " + "and checked again, " * 60 + "for ever.")
    assert 580 < len(candidate.text) <= 600
    assert candidate.text.endswith(("checked", "again,", "and"))


def test_a_text_of_demands_without_a_stop_takes_time_by_its_length():
    # Like the rows of a table. Each demand used to be compared with every other.
    def seconds(count):
        began = time.process_time()
        one("the clerk must file it and must not only keep it\n" * count)
        return time.process_time() - began

    seconds(10)
    assert seconds(8000) < 24 * seconds(1000)


def test_a_long_blank_line_takes_no_time():
    begun = time.process_time()
    assert identify_candidates([Page(1, "Rules\n" + " " * 30_000 + "x\nA log must be kept.")])
    assert time.process_time() - begun < patient(1)


def test_pdf_manual_by_others(real):
    pages = read_document_pages("hydro.pdf", real(HYDRO))
    candidates = identify_candidates(pages)
    said = [c for c in candidates if c.form == "words"]
    assert [(c.page, c.modality, c.text) for c in said[:2]] == [
        (6, "obligation", "The data model can (and must) extend beyond the smallest common "
         "denominator obtained with the partners."),
        (6, "obligation", "The model must therefore contain two levels of information: mandatory "
         "data (black boxes) and optional data (grey boxes)."),
    ]  # fmt: skip
    assert all(contains_quote(find_page(pages, c.page).text, c.text) for c in candidates)


def test_html_manual_by_others_is_citable(real):
    pages = read_document_pages("caching.html", real("mako-1.4.3/doc/caching.html"))
    candidates = identify_candidates(pages)
    assert "To use dogpile.cache, the cache_impl argument must be set" in " ".join(
        c.text for c in candidates
    )
    assert all(contains_quote(find_page(pages, c.page).text, c.text) for c in candidates)


def test_policy_of_the_demo(policy):
    pages, candidates = policy
    assert len(pages) == 12
    assert all(contains_quote(find_page(pages, c.page).text, c.text) for c in candidates)
    assert Counter(c.language for c in candidates)["de"] == 9
    kinds = Counter(c.modality for c in candidates)
    assert kinds["obligation"] >= 60
    assert kinds["prohibition"] >= 14
    assert [c.id for c in candidates[:2]] == ["C-001", "C-002"]
    assert not [c for c in candidates if "telephone directory" in c.text]
    [crossing] = [c for c in candidates if c.text.startswith("A record whose checksum")]
    assert crossing.page == 6


def test_same_pages_give_the_same_candidates(policy):
    pages, candidates = policy
    assert identify_candidates(pages) == candidates


def test_three_hundred_pages_take_less_than_two_seconds(policy):
    pages, _ = policy
    many = [Page(number, pages[number % 12].text + f"\n\nNo. {number}") for number in range(300)]
    started = time.process_time()
    assert len(identify_candidates(many)) > 2000
    assert time.process_time() - started < patient(2)


def test_every_shipped_phrase_finds_itself():
    for language in shipped_indicators().data.languages.values():
        for modality, phrases in language.modality.items():
            for phrase in phrases:
                if not set(phrase) & set("(|*+"):
                    text = f"x {phrase.removeprefix('=').replace('...', 'y')} z"
                    assert modality in {hit.modality for hit in shipped_indicators().find(text)}, (
                        phrase
                    )
