"""Replies that call no tool: what asks, what claims to be done, and what only tells."""

import time

import pytest

from activities.model.reply_classification import classify_reply, unquoted_reply_text
from config.agent_files import load_agent
from tests.soak import patient

ASKS = [
    "Would you like me to continue?",
    "I have read the document.\n\nWould you like me to go on with chapter 3?",
    "Shall I proceed with the next todo?",
    "The survey is written. Should I also write the plan now?",
    "Do you want me to use a table or a list?",
    "Let me know if you have any changes.",
    "Please let me know whether this is what you had in mind.",
    "Here is a summary.\n- point one\n- point two\n\n**Shall I go on?**",
    "Can I proceed?",
    "May I delete the old notes?",
    "Please confirm before I continue.",
    "I'll wait for your confirmation before I write the file.",
    "Is that okay with you?",
    "If you'd like, I can write the summary now.",
    "Which format should I use for the table?",
    "Awaiting your approval.",
    "Ready to continue?",
    "What would you like me to do next?",
    "I\N{RIGHT SINGLE QUOTATION MARK}m waiting for your instructions.",
    "Should I translate it? I will do so if you agree.",
    "The text says that yes is enough. Would you like me to write it?",
    "Would you like me\nto continue with the second chapter?",
    "Soll ich fortfahren?",
    "Der Plan steht. Soll ich jetzt mit Phase 2 beginnen?",
    "Möchten Sie, dass ich weitermache?",
    "Möchtest du, dass ich die Datei überschreibe?",
    "Darf ich die alten Notizen löschen?",
    "Bitte lassen Sie mich wissen, ob das so passt.",
    "Lass mich wissen, wie es weitergehen soll.",
    "Geben Sie mir bitte Bescheid, wenn ich weitermachen soll.",
    "Wenn Sie möchten, kann ich auch eine Übersicht erstellen.",
    "Ich warte auf Ihre Bestätigung.",
    "Bitte bestätigen Sie die Gliederung.",
    "Kann ich so fortfahren?",
    "Welches Format soll ich verwenden?",
    "Sind Sie damit einverstanden?",
    "Sollen wir die Übersicht jetzt ergänzen?",
]
CLAIMS = [
    "The task is complete.",
    "The todo is complete.",
    "All todos are done. The files are in output/.",
    "I have completed all the steps of the plan.",
    "Everything is done!",
    "I'm done.",
    "Done.",
    "Todo 3 is done.",
    "The whole extraction job has been successfully completed.",
    "That concludes the work. That completes my task.",
    "Task complete.",
    "Nothing is left to do.",
    "Die Aufgabe ist abgeschlossen.",
    "Damit sind alle Aufgaben erledigt.",
    "Ich habe alle Punkte abgearbeitet und die Arbeit ist fertig.",
    "Ich bin fertig.",
    "Alles ist erledigt.",
    "Fertig!",
    "Todo 2 ist erledigt.",
    "Ich habe die gesamte Arbeit abgeschlossen.",
]
REPORTS = [
    "",
    "I will now read chapter 3.",
    "The document has three chapters; the second lists the duties of the keeper.",
    'The sonnet begins "Shall I compare thee to a summer\'s day?" and goes on from there.',
    "The sonnet begins 'Shall I compare thee to a summer's day?' and goes on from there.",
    "The sonnet begins “Shall I compare thee to a\nsummer day?” and goes on.",
    "The form asks:\n\n> Would you like us to keep your records?\n\nI will note that.",
    "The template is:\n\n```\nShall I continue? The task is complete.\n```\n\nI copy it next.",
    "~~~text\nLet me know if you need more.\n~~~\nNow the second part follows.",
    "The button says `Would you like to continue?` in the screenshot.",
    "Should I use a table? Yes, a table shows the three columns best.",
    "The task is not complete yet.",
    "Once the task is complete, I will call job_complete.",
    "The work will be done in three steps.",
    "The plan says that the task is complete when output/guide.md exists.",
    "The supplier shall provide records. Records should be kept for ten years.",
    "The clause asks whether the keeper may destroy records.",
    "I should read the file before I edit it.",
    "The first of three tables is in place; the others follow.",
    "Ich lese jetzt Kapitel 3.",
    "Im Text steht: „Soll ich dich mit einem Sommertag vergleichen?“ Das notiere ich.",
    "Dort heißt es »Möchten Sie, dass wir fortfahren?« und nichts weiter.",
    "Sobald die Aufgabe abgeschlossen ist, rufe ich job_complete auf.",
    "Die Aufgabe ist noch nicht abgeschlossen.",
    "Soll ich eine Tabelle nehmen? Ja, sie zeigt es am besten.",
    "Der Auftragnehmer soll Aufzeichnungen führen und darf sie nicht vernichten.",
    "> Die Aufgabe ist erledigt.\n\nDiese Stelle zitiere ich im nächsten Schritt.",
]
REFUSES = [
    "I'm sorry, but I can't help with that.",
    "I can\N{RIGHT SINGLE QUOTATION MARK}t assist with that request. I could say more on tea.",
    "Sorry, I cannot comply with this request.",
    "I must decline to write this. Would you like something else?",
    "I'm not able to provide such content because it could cause harm.",
    "I cannot provide that kind of content.",
    "I'm not able to help with creating this document.",
    "This goes against my guidelines.",
    "As an AI language model, I cannot write this.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Ich kann Ihnen bei dieser Aufgabe leider nicht helfen.",
    "Diese Anfrage verstößt gegen meine Richtlinien.",
    "Désolé, je ne peux pas vous aider avec cela.",
    "Lo siento, pero no puedo ayudarte con eso.",
    "Mi dispiace, ma non posso aiutarti.",
    "Desculpe, não posso ajudar com isso.",
    "Het spijt me, maar daar kan ik je niet mee helpen.",
    "抱歉\N{FULLWIDTH COMMA}我无法协助您完成这个请求。",
    "申し訳ありませんが、そのご要望にお応えできません。",
]
NO_REFUSALS = [
    "I can't help with that until todo 2 is done.",
    "I cannot help with that file: it does not exist.",
    "I can't open documents/a.pdf. I will read the text beside it.",
    "The clause says: 'I'm sorry, but I can't help with that.' It is void.",
    "Dabei kann ich nicht helfen, solange die Datei fehlt.",
    "I read the plan. The report is in output/a.md. I can't help with that legal question.",
    "I'm sorry, but I can't help with that. " + "The law of tea has many sides. " * 30,
    "The supplier must decline to accept such orders.",
]
WORDING = load_agent("generalist").wording


@pytest.mark.parametrize("text", ASKS)
def test_asking_is_recognised(text: str) -> None:
    assert classify_reply(text, WORDING) == "asks"


@pytest.mark.parametrize("text", CLAIMS)
def test_claiming_is_recognised(text: str) -> None:
    assert classify_reply(text, WORDING) == "claims"


@pytest.mark.parametrize("text", REFUSES)
def test_a_refusal_in_words_is_recognised(text: str) -> None:
    assert classify_reply(text, WORDING) == "refuses"


@pytest.mark.parametrize("text", NO_REFUSALS)
def test_an_answer_or_a_trouble_is_no_refusal(text: str) -> None:
    assert classify_reply(text, WORDING) != "refuses"


@pytest.mark.parametrize("text", REPORTS)
def test_what_is_quoted_denied_or_only_told_is_neither(text: str) -> None:
    assert classify_reply(text, WORDING) == "reports"


def test_asking_comes_before_claiming() -> None:
    assert classify_reply("The task is complete. Shall I go on?", WORDING) == "asks"
    assert classify_reply("Die Aufgabe ist erledigt. Soll ich noch etwas tun?", WORDING) == "asks"


def test_a_question_that_nobody_answered_counts_whatever_stands_before() -> None:
    text = "Should I use a table? Yes, I will. Shall I also add a legend?"
    assert classify_reply(text, WORDING) == "asks"


def test_code_that_is_never_closed_hides_what_follows_and_no_more() -> None:
    assert unquoted_reply_text("One.\n```\nShall I?") == "One."
    assert unquoted_reply_text("~~~~\n~~~\nShall I?\n~~~~\nTwo.") == "Two."


@pytest.mark.parametrize(
    "text",
    ["„" * 50_000, '"' * 49_999, "would you " * 5000, "`" * 50_000, "> \n" * 16_000, "a'" * 25_000],
    ids=["low", "straight", "words", "ticks", "quotes", "apostrophes"],
)
def test_hostile_text_is_judged_in_no_time(text: str) -> None:
    begun = time.monotonic()
    classify_reply(text, WORDING)
    assert time.monotonic() - begun < patient(2)
