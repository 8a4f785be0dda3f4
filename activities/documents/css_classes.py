"""Classes of an HTML document whose elements a reader does not see, or sees struck out."""

import re

from lxml import html

STRUCK = re.compile(r"text-decoration(?:-line)?\s*:[^;]*line-through", re.IGNORECASE)
HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_SHOWN = re.compile(r"display\s*:\s*(?!none)[a-z]|visibility\s*:\s*(?!hidden)[a-z]", re.IGNORECASE)
_RULE = re.compile(r"([^{}]{1,500})\{([^{}]{0,2000})\}")
_CLASS_ALONE = re.compile(r"(?:^|,)\s*[\w]*\.([\w-]+)\s*(?=,|$)")
_CLASS = re.compile(r"\.([\w-]+)")
MAX_SHEET_CHARACTERS = 1_000_000


def omitted_css_classes(root: html.HtmlElement) -> tuple[set[str], set[str]]:
    """Return the class names that the document's style sheets strike out, and those they hide.

    A class counts as hidden if nothing in the document shows it again: no script, and no rule,
    even one under a condition such as `@media (min-width: 40em)`.
    """
    sheets = " ".join(node.text or "" for node in root.iter("style"))[:MAX_SHEET_CHARACTERS]
    sheet = re.sub(r"/\*.*?\*/", "", sheets, flags=re.DOTALL)
    rules = _RULE.findall(sheet)
    struck = _classes_with_declaration(rules, STRUCK)
    if next(root.iter("script"), None) is not None:
        return struck, set()
    shown = {
        name
        for selector, style in rules
        if _SHOWN.search(style)
        for name in _CLASS.findall(selector)
    }
    always = _RULE.findall(_drop_conditional_rules(sheet))
    return struck, _classes_with_declaration(always, HIDDEN) - shown


def _drop_conditional_rules(sheet: str) -> str:
    """Leave out blocks such as `@media print`, which say nothing about what a reader sees."""
    parts, begin, depth, is_conditional = [], 0, 0, False
    for brace in re.finditer(r"[{}]", sheet):
        if brace[0] == "{":
            if not depth:
                head = sheet[begin : brace.start()].rpartition(";")[2]
                is_conditional = head.lstrip().startswith("@")
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                parts += [] if is_conditional else [sheet[begin : brace.end()]]
                begin = brace.end()
    return "".join(parts)


def _classes_with_declaration(
    rules: list[tuple[str, str]], declaration: re.Pattern[str]
) -> set[str]:
    """Return the class names that rules with this declaration select by themselves."""
    return {
        name
        for selector, style in rules
        if declaration.search(style)
        for name in _CLASS_ALONE.findall(selector.strip())
    }
