"""Classes of an HTML document whose elements a reader does not see, or sees struck out."""

import re

from lxml import html

STRUCK = re.compile(r"text-decoration(?:-line)?\s*:[^;]*line-through", re.IGNORECASE)
HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|(?<![\w-])opacity\s*:\s*0*\.?0+\s*(?:;|$|!)"
    # Too small to be read.
    r"|font-size\s*:\s*(?:0|[01](?:\.\d+)?(?:px|pt))\s*(?:;|$|!)"
    r"|(?<![\w-])color\s*:\s*(?:transparent|(?:rgb|hsl)a?\([^)]*[,/]\s*0*\.?0+%?\s*\))"
    # Moved or cut away.
    r"|text-indent\s*:\s*-\d{3,}|(?:left|top)\s*:\s*-\d{3,}|clip\s*:\s*rect\(\s*0"
    r"|clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)|transform\s*:[^;]*scale[xy]?\(\s*0\s*[,)]"
    r"|(?=[^{}]*overflow[\w-]*\s*:\s*hidden)[^{}]*?(?<![\w-])(?:max-)?(?:height|width)\s*:\s*[01](?:px)?\s*(?:;|$)",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"(?<![\w-])color\s*:\s*([^;!]+)", re.IGNORECASE)
_GROUND = re.compile(r"background(?:-color|-image)?\s*:\s*([^;!]+)", re.IGNORECASE)
_WHITE = re.compile(
    r"white|#f{3}(?:f{3})?|#f[ef][def][def][def][def]|rgba?\(\s*25[0-5]\s*,\s*25[0-5]\s*,\s*25[0-5].*",
    re.IGNORECASE,
)


def is_ground_coloured(style: str, *, has_grounds: bool) -> bool:
    """Whether a style writes in the colour of its ground.

    Args:
        has_grounds: Whether anything in the document sets a ground, which may be a dark one.
    """
    colour, ground = _COLOUR.search(style), _GROUND.search(style)
    if colour is None:
        return False
    name = colour[1].strip().lower()
    if ground is not None:
        return ground[1].strip().lower() == name
    return not has_grounds and _WHITE.fullmatch(name) is not None


def has_coloured_grounds(root: html.HtmlElement) -> bool:
    """Whether anything in the document sets a ground that may not be white."""
    styles = [node.text or "" for node in root.iter("style")]
    styles += [node.get("style", "") for node in root.iter() if isinstance(node.tag, str)]
    if any(node.get("bgcolor") or node.get("background") for node in root.iter()):
        return True
    grounds = [ground for style in styles for ground in _GROUND.findall(style)]
    return any(not _WHITE.fullmatch(ground.strip()) for ground in grounds)


_SHOWN = re.compile(r"display\s*:\s*(?!none)[a-z]|visibility\s*:\s*(?!hidden)[a-z]", re.IGNORECASE)
_RULE = re.compile(r"([^{}]{1,500})\{([^{}]{0,2000})\}")
_CLASS_ALONE = re.compile(r"(?:^|,)\s*[\w]*(?:\.|(?=#))(#?[\w-]+)\s*(?=,|$)")
_CLASS = re.compile(r"\.([\w-]+)")
MAX_SHEET_CHARACTERS = 1_000_000


def omitted_css_classes(root: html.HtmlElement) -> tuple[set[str], set[str]]:
    """Return the classes, and ids as `#id`, that the style sheets strike out, and that they hide.

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
    grounds = has_coloured_grounds(root)
    coloured = [rule for rule in always if is_ground_coloured(rule[1], has_grounds=grounds)]
    hidden = _classes_with_declaration(always, HIDDEN) | _classes_with_declaration(
        coloured, _COLOUR
    )
    return struck, hidden - shown


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
