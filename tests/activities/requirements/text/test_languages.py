"""Whether a document is in a language whose words of obligation are known."""

import pytest

from activities.documents.pages import Page
from activities.requirements.text.languages import is_language_known

PROSE = "The valves listed below must be closed by the operator before the pump is started."
ROWS = [
    "Hex bolt M8x40 | DIN 933 | steel, zinc plated | 4 pcs | 0.30 kg | torque 25 Nm",
    "Gate valve DN50 | EN 1171 | cast iron, flanged ends | 2 pcs | 9.80 kg | PN16",
    "Pressure gauge 0-16 bar | EN 837-1 | brass, bottom entry | 3 pcs | 0.20 kg | 5 µm",
]
BARS = "\n".join(f"| {row} |" for row in ROWS * 20)
PLAIN = "\n".join(row.replace(" | ", "  ") for row in ROWS * 20)
GERMAN = "Die Ventile müssen vom Bediener geschlossen werden, bevor die Pumpe gestartet wird."
FRENCH = (
    "Toutes les vannes de la liste doivent rester sous le contrôle du chef de poste. "
    "Le poste de travail doit rester libre pendant la pause."
)
DUTCH = (
    "Alle afsluiters moeten worden gesloten voordat de pomp wordt gestart door de bediener. "
    "De sleutel moet altijd bij de chef van dienst worden ingeleverd."
)
CHINESE = "所有员工必须在开始工作之前接受培训。"
RUSSIAN = "Каждый работник обязан пройти инструктаж до начала работы."


@pytest.mark.parametrize(
    "text",
    [
        f"{PROSE}\n\n{BARS}",
        f"{PROSE}\n\n{PLAIN}",
        BARS,
        PLAIN,
        f"{GERMAN}\n\n{BARS}",
        # Names are no evidence, whatever their letters.
        f"{PROSE}\n\n" + "| Jiří Dvořák | Łódź | Renée Lefèvre | Århus |\n" * 30,
        # Nor are two loan words.
        f"{PROSE} The café has a façade.",
        "Check oil level daily. Replace filter element every 500 hours of operation.",
        "\u03b1 \u03b2 \u03b3",
        "",
    ],
)
def test_tables_and_codes_are_no_evidence_of_another_language(text: str) -> None:
    assert is_language_known([Page(1, text)])


@pytest.mark.parametrize(
    "text",
    [
        RUSSIAN,
        "| Кран | закрыть |\n| Фильтр | проверить |\n" * 20,
        f"{PROSE}\n\n{RUSSIAN}",
        f"{BARS}\n\n" + f"{RUSSIAN}\n" * 30,
        CHINESE,
        f"{PROSE}\n\n{PROSE}\n\n{CHINESE}",
        FRENCH,
        f"{PROSE}\n\n{f'{FRENCH} ' * 5}",
        f"{BARS}\n\n{FRENCH}",
        "| Vanne fermée | contrôlée par le chef |\n" * 20,
        DUTCH,
        # A third of it.
        f"{PROSE} " * 12 + f"\n\n{DUTCH} {DUTCH} {DUTCH} {DUTCH}",
    ],
)
def test_another_language_is_noticed(text: str) -> None:
    assert not is_language_known([Page(1, text)])
