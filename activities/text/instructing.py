"""Whether a sentence asks for something: it binds, instructs or asks a question.

Words of obligation are those of `activities.text.indicators`; imperatives are known by the words of
`config/briefs/statements.yaml`, by their form and by their place. Python's `re` is used on single
sentences only, with expressions that cannot backtrack.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from activities.text.indicators import shipped_indicators
from activities.text.obligations import forbids, has_obligation, is_prohibition
from activities.text.statement_words import (
    heading_words,
    is_finite,
    is_verb,
    opens_with,
    statement_words,
    words_of,
)

Force = Literal["asks", "permits", "example", "none"]
"""What a sentence does: it asks for something, leaves it free, gives an example, or none."""
MAX_SENTENCE = 2000
_CLAUSES = re.compile(r"[,;:]|\b(?:and|but|und|aber)\b", re.IGNORECASE)
_LABEL = re.compile(
    r"\s*(?:[^\W_][\w'/&-]{0,30} ){0,3}[^\W_][\w'/&-]{0,30}"
    r"(?: ?\([^()]{0,40}\))? ?[:\u2013\u2014]\s+(?=\S)"
)
_STORY = re.compile(
    r"(?:as an? [^,.;:]{1,60}?,?\s+(?:i|we) (?:want|need|would like)"
    r"|als [^,.;:]{1,60}?,?\s+(?:möchte|will|brauche) ich)\b",
    re.IGNORECASE,
)
"""The beginning of a user story."""
_NEED = re.compile(
    r"(?:for|per|besides) [^,.;:]{1,80}?,? "
    r"(?:i|we)(?:'ll|\s(?:will|also|still))? (?:need|want|require|would like)\b"
    r"|(?:für|zu|je|pro|neben) [^,.;:]{1,80}? (?:fehl(?:t|en) (?:uns|mir)"
    r"|(?:brauchen|benötigen) wir|(?:brauche|benötige) ich)\b",
    re.IGNORECASE,
)
"""A need whose subject comes late."""
_EDGES = " \t*_\"'`\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb()[]"
_BUT = re.compile(r"[,;]?\s(?:but|however|yet|aber|jedoch)\s|;", re.IGNORECASE)
_SENTENCE_LIKE = re.compile(r";\s|\s(?:\u2013|\u2014|--?)\s")
"""What parts clauses that could each be a sentence."""
_CALL = re.compile(r"[\w.]+\((?!(?:s|d|ed|n|e|en)\))[^()]{0,80}\)(?= (?:\w+s|and|or|und|oder)\b)")
"""A call of a function that is a subject, whose name may be that of a verb."""
_HINT = re.compile(r"\(please complete the following information\)?[:*_]*\s*$", re.IGNORECASE)
"""What the templates of forges add to a label."""
_FORM = re.compile(r"(?:ly|ing|ed|(?<!s)s|day|tion|ment|ness|ity|ance|ence|ers?|ists?)$")
_PREFIX = re.compile(
    r"(?:re|un|de|dis|pre|over|co|auto|cross|double|back|self|fine|hard|spell|proof)-?(?=\w{3})"
)
_SHAPED = re.compile(r"[a-z]{3,}(?:ify|ize|ise)$")
_GERMAN_FORM = re.compile(r"[a-zäöüß]{3,}(?:en|ern|eln)$")


def sentence_force(text: str) -> Force:
    """Return what one sentence, or one list entry, does by its own words."""
    text = _HINT.sub("", text[:MAX_SENTENCE]).strip(_EDGES)
    words = words_of(text)
    if not words:
        return "none"
    if opens_with(words, "examples"):
        return "example"
    if opens_with(_without_leading(words), "permissions"):
        return (
            "asks" if forbids(text) or any(map(has_obligation, _BUT.split(text)[1:])) else "permits"
        )
    if has_obligation(text) or _STORY.match(text) or _NEED.match(text):
        return "asks"
    label = _LABEL.match(text)
    parts = [words, *([words_of(text[label.end() :])] if label else [])]
    if any(_is_question(part, text) for part in parts):
        return "asks"
    named = heading_words(label[0]) if label else ""
    if named in statement_words().of_all("labels") | statement_words().of_all("expectations"):
        return "asks"
    if named in statement_words().of_all("observations"):
        return "none"
    for part in parts[1:] if _CALL.match(text) else parts:
        bare = _without_leading(part)
        if opens_with(bare, "permissions"):
            return "permits"
        if opens_with(bare, "not_instructions"):
            continue
        direct = [word for word in bare if word not in statement_words().grammar.inserted]
        if opens_with(direct, "openers") or _is_instruction(part):
            return "asks"
    return "asks" if _asks_in_later_clause(text) else "none"


def _asks_in_later_clause(text: str) -> bool:
    if any(sentence_force(part) == "asks" for part in _SENTENCE_LIKE.split(text)[1:]):
        return True
    after_colon = _without_leading(words_of(text.rpartition(": ")[2])) if ": " in text else []
    return len(after_colon) > 1 and _instructs_at_start(after_colon, strict=True)


def heading_asks(heading: str) -> bool:
    """Return whether a heading is an instruction or binds, and not the name of a section."""
    words = words_of(heading.strip(_EDGES))
    if len(words) < 3:
        return False
    if heading.rstrip().endswith("?"):
        return _is_question(words, heading)
    bare = _without_leading(words)
    listed = bool(bare) and (
        (is_verb(bare[0]) and bare[0] not in statement_words().of_all("also_nouns"))
        or bool(opens_with(bare, "negations"))
        or (
            len(bare) > 1
            and bare[0] in statement_words().of_all("also_nouns")
            and bare[1] in statement_words().grammar.determiners
        )
    )
    indirect = words[0] in statement_words().of_all("questions")
    return (listed and sentence_force(heading) == "asks") or (
        has_obligation(heading) and not indirect
    )


def says_manner(text: str) -> bool:
    """Return whether a sentence, of which no step of a plan is made, only says how to work."""
    label = _LABEL.match(text.strip(_EDGES))
    said = text.strip(_EDGES)[label.end() if label else 0 :]
    parts = [part for part in _CLAUSES.split(said) if re.search(r"\w", part)]
    return bool(parts) and all(map(_says_manner, parts))


def _says_manner(clause: str) -> bool:
    bare = _without_leading([word for word in words_of(clause) if word[0].isalnum()])
    if opens_with(bare, "not_reminders"):
        return False
    if opens_with(bare, "negations") or opens_with(bare, "forbids") or is_prohibition(clause):
        return True
    manners = statement_words().of_all("manners") | statement_words().grammar.determiners
    return all(word in manners for word in bare)


def describes_result(text: str) -> bool:
    words = words_of(text.rstrip(": "))
    if not words or statement_words().grammar.finite_past & set(words):
        return False
    for language in statement_words().languages.values():
        subject = [n for n, word in enumerate(words) if word in language.results]
        each = words[0] in {"each", "every", "jede", "jeder", "jedes"}
        if (subject and subject[0] <= 5) or each:
            after = words[(subject[0] + 1 if subject else 1) :]
            if any(_is_form_of(word, language.describes) for word in after[:6]):
                return True
    return False


def _is_form_of(word: str, verbs: frozenset[str]) -> bool:
    firsts = {verb.split()[0] for verb in verbs}
    return (
        word in firsts
        or word.removesuffix("s") in firsts
        or word.removesuffix("es") in firsts
        or word == "has"
    )


def _without_leading(words: list[str]) -> list[str]:
    start = 0
    while start < len(words):
        if words[start] in {",", "(", ")", "!"}:
            start += 1
        elif count := opens_with(words[start : start + 5], "before"):
            start += count
        elif (
            words[start].endswith("ly")
            and start + 1 < len(words)
            and (is_verb(words[start + 1]) or words[start + 1] == ",")
        ):
            start += 1
        else:
            break
    return words[start:]


def _is_question(words: list[str], text: str) -> bool:
    if not text.rstrip("*_\"')\u201d\u201c ").endswith("?") or len(words) < 4:
        return False
    bare = _without_leading(words)
    questions = statement_words().of_all("questions")
    starts = [bare[:3], *(bare[n + 1 : n + 4] for n, word in enumerate(bare) if word in ",:;")]
    return any(
        start and (start[0] in questions or (start[1:2] and start[1] in questions))
        for start in starts
    )


def _is_instruction(words: list[str]) -> bool:
    bare = _without_leading(words)
    if not bare:
        return False
    if len(bare) == 1:
        return len(words) > 1 and is_verb(bare[0])
    if _instructs_at_start(bare):
        return True
    if _is_request(words):
        return True
    if bare[0] == "du" and len(bare) > 2:
        return bare[1].endswith("st") and bare[1] not in statement_words().grammar.german_states
    if bare[0] == "you" and len(bare) > 2:
        return is_verb(bare[1]) and bare[1] not in statement_words().grammar.english_states
    if _begins_clause(bare) or bare[0].endswith("ing"):
        return any(_instructs_at_start(part, strict=True) for part in _after_commas(bare)) or (
            _instructs_inverted(bare)
        )
    return False


def _is_request(words: list[str]) -> bool:
    """Return whether "please" makes it a request, or "so" leads to an instruction."""
    for place, word in enumerate(words):
        if word in {"please", "bitte", "pls", "plz"}:
            return len(words) > 2 and not opens_with(words[place + 1 :], "not_instructions")
        if word in {"so", "then", "also"} and place and words[place - 1] in {",", ";"}:
            after = _without_leading(words[place:])
            if (
                len(after) > 1
                and _is_determiner(after[1])
                and _instructs_at_start(after, strict=True)
            ):
                return True
    return False


def _begins_clause(words: Sequence[str]) -> bool:
    """Return whether the words begin like a clause; "an" begins one in German alone."""
    language = shipped_indicators().language_of(" ".join(words[:40]))
    clauses = statement_words().languages[language].clauses
    return words[0] in clauses or " ".join(words[:2]) in clauses


def _after_commas(words: list[str]) -> Iterator[list[str]]:
    for place in [n for n, word in enumerate(words) if word in {",", ":"}][:6]:
        part = _without_leading(words[place + 1 :])
        if part and not opens_with(part, "not_instructions"):
            yield part


def _instructs_at_start(words: list[str], *, strict: bool = False) -> bool:
    """Return whether the words begin with a bare verb form, or with one that is negated."""
    if count := opens_with(words, "negations"):
        return _is_negated_verb(words[:count], _without_leading(words[count:]))
    first, after = words[0], words[1:]
    if _is_polite_german(first, after) or _is_german_infinitive(words):
        return True
    if _is_plural_german(first, after):
        return True
    if first not in statement_words().of_all("verbs"):
        return _is_unlisted_verb(first, after)
    if strict and first in {"do", "have", "be"} and after[:1] and not _is_determiner(after[0]):
        return False
    if first not in statement_words().of_all("also_nouns"):
        return not after or not is_finite(after[0])
    return _is_verb_in_place(first, after, strict=strict)


def _is_negated_verb(negation: list[str], after: list[str]) -> bool:
    """Return whether it is like "Do not guess" or "Never guess", and not like "never deleted"."""
    if (
        not after
        or after[0] in {"you", "we", "they", "i"}
        or not after[0].replace("-", "").isalpha()
    ):
        return False
    if negation[:1] == ["never"] and not is_verb(after[0]):
        return not (is_finite(after[0]) or _FORM.search(after[0]))
    return not is_finite(after[0])


def _is_determiner(word: str) -> bool:
    return word in statement_words().grammar.determiners


def _is_verb_in_place(first: str, after: list[str], *, strict: bool) -> bool:
    """Return whether a word that may be a noun is a verb by what comes after it."""
    if not after or after[0] in {":", ",", ")"}:
        return False
    if first in statement_words().languages["de"].verbs:
        return after[0] not in {"der", "des", "von", "vom", "mit", "für"}
    if after[0] == "that":
        return first in statement_words().grammar.saying
    if (
        after[0] in statement_words().grammar.determiners
        or "." in after[0]
        or "/" in after[0]
        or after[0][0].isdigit()
    ):
        return True
    if after[0].endswith("ed") and len(after[0]) > 3:
        return False
    for word in after[:10]:
        if word in statement_words().grammar.subordinators or word in ",;:()":
            break
        if word in statement_words().grammar.finite:
            return False
    return not strict or after[0] not in {"of"}


def _is_unlisted_verb(first: str, after: list[str]) -> bool:
    """Return whether a word that is not listed is a verb by its form and what comes after it."""
    if (
        not first.isascii()
        or not first.replace("-", "").isalpha()
        or first in statement_words().grammar.not_verbs
    ):
        return False
    if _begins_clause([first]) or _FORM.search(first) or not after:
        return False
    known = (match := _PREFIX.match(first)) is not None and is_verb(first[match.end() :])
    shaped = _SHAPED.match(first) is not None and first not in statement_words().grammar.not_shaped
    if known or shaped:
        return _is_verb_in_place(first, after, strict=False)
    grammar = statement_words().grammar
    return after[0] in grammar.objects and not any(word in grammar.finite for word in after[:6])


def _is_polite_german(first: str, after: list[str]) -> bool:
    return (
        bool(after)
        and after[0] == "sie"
        and _GERMAN_FORM.match(first) is not None
        and (first not in statement_words().of_all("questions"))
    )


def _is_plural_german(first: str, after: list[str]) -> bool:
    """Return whether it is like "Achtet auf die Namen"."""
    german = statement_words().languages["de"]
    imperative = f"{first.removesuffix('t').removesuffix('e')}e"
    return (
        first.endswith("t")
        and bool(after)
        and imperative in german.verbs - german.also_nouns
        and first not in statement_words().grammar.german_finite
        # "Startet er nicht, …" is a condition.
        and ("," not in after or after[after.index(",") + 1 :][:1] in (["dass"], ["ob"]))
    )


def _is_german_infinitive(words: list[str]) -> bool:
    """Return whether it is an instruction like "Alle Dateien lesen und ablegen"."""
    if words[-1] in {"?", "!"}:
        words = words[:-1]
    german = statement_words().languages["de"]
    return (
        2 <= len(words) <= 40
        and _GERMAN_FORM.match(words[-1]) is not None
        and not statement_words().grammar.german_finite & set(words)
        and _infinitive_verb(words[-1], german.verbs)
    )


def _infinitive_verb(word: str, verbs: frozenset[str]) -> bool:
    """Return whether the infinitive, perhaps with a prefix, is of one of the imperatives."""
    stem = re.sub(r"(?:e(?=rn$|ln$)|en$)", "", word)
    stem = stem.removesuffix("n") if stem.endswith(("rn", "ln")) else stem
    prefixes = statement_words().grammar.german_prefixes
    starts = {stem, *(stem.removeprefix(prefix) for prefix in prefixes)}
    return any(f"{start}e" in verbs for start in starts)


def _instructs_inverted(words: list[str]) -> bool:
    german = statement_words().languages["de"]
    verbs = german.verbs - german.also_nouns
    instructs = any(word in verbs and word.endswith("e") for word in words[1:14])
    articles = statement_words().grammar.german_articles
    return instructs and "ich" not in words and not articles.isdisjoint(words)
