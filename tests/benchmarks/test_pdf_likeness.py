"""Which texts the comparison of PDF engines counts as equal, and which as run together."""

from benchmarks.pdf.corpus_fetch import corpus_samples
from benchmarks.pdf.likeness import likeness, page_words


def test_layout_is_no_difference():
    theirs = ["The \ufb01rst require-\nment, Caf\u00e9", "\u8a18\u9332 \u202bab\u202c"]
    assert page_words(theirs) == ["the", "first", "requirement", "cafe", "\u8a18", "\u9332", "ab"]


def test_words_are_counted_as_often_as_they_are_there():
    same = likeness(["one two two three"], ["two one three"])
    assert (same.words, same.share) == (4, 0.75)
    assert same.order == 0
    assert likeness(["one two"], ["one two"]).order == 1


def test_words_without_spaces_between_them_are_run_together():
    same = likeness(["every package must have a name"], ["everypackagemust have a name"])
    assert same.run_together == 250
    assert same.share == 0.5
    assert likeness(["every package"], ["unpackaging"]).run_together == 0


def test_the_corpus_names_each_pdf_once():
    names = [sample.name for sample in corpus_samples()]
    assert len(names) == len(set(names)) >= 40
    assert {sample.package.partition(":")[0] for sample in corpus_samples()} == {"deb", "pypi"}
