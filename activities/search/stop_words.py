"""Words that nearly every text has, by language: a search for them finds everything."""

from __future__ import annotations

from collections.abc import Sequence

ENGLISH = """
a about all also an and any are as at be been but by can could did do does for from had has have how
if in into is it its may me my no not of on or our shall should so some such than that the their
them then there these they this those to us was we were what when where which who whom whose why
will with would you your
"""
GERMAN = """
aber alle als am an auch auf aus bei beim bis da damit das dass dem den der des die dies diese
dieser durch ein eine einem einen einer eines er es für hat hier ich ihr im in ist kann kein keine
man mit nach nicht noch nur ob oder sein sich sie sind so soll über um und uns unter vom von vor
war was welche welcher wenn wer werden wie wir wird wo zu zum zur
"""
LANGUAGES = [frozenset(words.split()) for words in (ENGLISH, GERMAN)]


def without_stop_words(words: Sequence[str]) -> list[str]:
    """Return the words, in lower case, without those of the language that has most of them; all of
    them if nothing else remains.
    """
    language = max(LANGUAGES, key=lambda each: sum(word in each for word in words))
    return [word for word in words if word not in language] or list(words)
