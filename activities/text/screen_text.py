"""What a screen shows of a program's output: no colours, and the last state of progress bars.

The screen is as wide and as high as the output needs, so nothing is wrapped or scrolls away, and
clearing the whole screen removes nothing.
"""

import re

_CONTROLS = re.compile(
    r"(?:\x1b\[|\x9b)(?P<numbers>[0-9;:<=>?]*)[ -/]*(?P<command>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
)
"""A control sequence, a string for the terminal such as a title, another sequence, a character."""
_MOVING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MAX_STEPS = 500
"""Most columns or lines by which a command moves the cursor."""


def show_on_screen(text: str) -> str:
    """Return the text as a screen shows it, at most about twice as long as the text."""
    if not _MOVING.search(text):
        return text
    shown = _Screen().write(text)
    # Spaces that the cursor jumped over may be many times the output.
    if len(shown) <= 2 * len(text) + 1000:
        return shown
    return _CONTROLS.sub(lambda control: "\n" if control[0] == "\n" else "", text)


class _Screen:
    def __init__(self) -> None:
        self._lines = [""]
        self._row = self._column = 0

    def write(self, text: str) -> str:
        place = 0
        for control in _CONTROLS.finditer(text):
            self._put(text[place : control.start()])
            place = control.end()
            if command := control["command"]:
                self._obey(command, control["numbers"])
            else:
                self._move(control[0])
        self._put(text[place:])
        return "\n".join(self._lines)

    def _put(self, text: str) -> None:
        if text:
            line = self._lines[self._row]
            end = self._column + len(text)
            self._lines[self._row] = f"{line[: self._column]:<{self._column}}{text}{line[end:]}"
            self._column = end

    def _move(self, control: str) -> None:
        if control == "\n":
            self._row, self._column = self._row + 1, 0
            if self._row == len(self._lines):
                self._lines.append("")
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)

    def _obey(self, command: str, numbers: str) -> None:
        """Move the cursor or erase; other commands, such as colours, show nothing."""
        number = int(numbers) if numbers.isdecimal() and len(numbers) < 6 else 0
        steps = min(max(1, number), MAX_STEPS)
        line = self._lines[self._row]
        if command in "AF":
            self._row = max(0, self._row - steps)
        elif command in "BE":
            self._row = min(len(self._lines) - 1, self._row + steps)
        elif command == "C":
            self._column += steps
        elif command == "D":
            self._column = max(0, self._column - steps)
        elif command in "G`":
            self._column = steps - 1
        elif command == "K":
            blank = " " * min(len(line), self._column + 1)
            kept = {0: line[: self._column], 1: blank + line[self._column + 1 :]}
            self._lines[self._row] = kept.get(number, "")
        elif command == "J" and number == 0:
            self._lines[self._row] = line[: self._column]
            del self._lines[self._row + 1 :]
        if command in "EF":
            self._column = 0
