"""What `suite_probes` does in languages but Python, line by line."""

import hashlib
import re

from activities.projects.tests_by_name import TestKey, is_test_file

_LITERAL = r"(-?\d+(?:\.\d+)?|\"[^\"\\\n]*\"|'[^'\\\n]*'|true|false|null)(?=\s*[,)])"
_FIRST = r"[^\"'`,]+(?:\([^()]*\))?[^\"'`,]*, "
"""A first argument without texts and commas of its own."""
_EXPECTATIONS = {
    ".go": re.compile(rf"!= {_LITERAL.replace('[,)]', r'(?:{|[|]{2})')}"),
    ".rs": re.compile(rf"\bassert_eq!\({_FIRST}{_LITERAL}"),
    "": re.compile(
        rf"(?:(?<!\.not)\.to(?:Be|Equal)\(|\b(?:equal|(?:deepS|s)trictEqual|deepEqual|is)\({_FIRST})"
        rf"{_LITERAL}"
    ),
}
_TITLES = {
    ".go": re.compile(r"^func (?:\(.*?\) )?(\w+)\("),
    ".rs": re.compile(r"^\s*(?:pub )?(?:async )?fn (\w+)\("),
    "": re.compile(
        r"\b(?:test|it)(?:\.\w+)?\(\s*[\"'`]([^\"'`]+)[\"'`]|^(?:async )?(function|const|let|var)\b"
    ),
}
"""Where tests begin, and functions that are none."""
_PLANTED = {
    ".rs": '\n#[test]\nfn {name}() {{ panic!("{name}") }}\n',
    ".go": '\nfunc {name}(t *testing.T) {{ t.Fatal("{name}") }}\n',
}


def _kind(path: str) -> str:
    ending = path[path.rfind(".") :]
    return ending if ending in (".go", ".rs") else ""


def challenge_lines(
    path: str, text: str, old: str, name: str
) -> tuple[str, list[TestKey], list[TestKey]]:
    """As `challenge_python`; the key of such a test is its title alone."""
    kind = _kind(path)
    plain = {
        ".go": "testing.T" in text and path.endswith("_test.go"),
        ".rs": "#[test]" in text,
        "": re.search(r"\b(?:test|it)(?:\.\w+)?\(", text) is not None and is_test_file(path),
    }
    if not plain[kind]:
        return text, [], []
    lines, known, title = text.split("\n"), set(old.split("\n")), ""
    expecting = list[TestKey]()
    for number, line in enumerate(lines):
        if match := _TITLES[kind].search(line):
            title = match[1] or ""
        is_check = kind != ".go" or re.search(
            r"\.(?:Error|Fatal|Fail)", "".join(lines[number:][:3])
        )
        if not title or line in known or not is_check:
            continue
        changed = _EXPECTATIONS[kind].sub(
            lambda literal: literal[0].removesuffix(literal[1]) + _other_literal(literal[1], kind),
            line,
        )
        if changed != line:
            lines[number] = changed
            expecting.append(("", "", title))
    if kind == ".go":
        # The tests of a folder are one package.
        name = f"Test_{name}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    return "\n".join(lines) + _planted_text(kind, text, name), [("", "", name)], expecting


def _planted_text(kind: str, text: str, name: str) -> str:
    if kind:
        return _PLANTED[kind].format(name=name)
    is_module = re.search(r"^\s*(?:import|export)\b", text, re.MULTILINE) is not None
    fails = f"('{name}', () => {{ throw new Error('{name}'); }});\n"
    for module in ("node:test", "vitest", "@jest/globals", "tap"):
        if re.search(rf"['\"]{module}['\"]", text):
            if is_module:
                return f"\nimport {{ test as {name} }} from '{module}';\n{name}{fails}"
            return f"\n;require('{module}').test{fails}"
    # A module of the product may look like a test and be loaded without a runner.
    return f"\n;(globalThis.test || globalThis.it || (() => {{}})){fails}"


def _other_literal(literal: str, kind: str) -> str:
    if literal in ("true", "false"):
        return "false" if literal == "true" else "true"
    if literal == "null":
        return '"changed"'
    if literal[0] in "\"'":
        # A single quote of Go and Rust is one character.
        return literal if kind and literal[0] == "'" else f"{literal[:-1]} changed{literal[-1]}"
    return f"({literal} + 1.5)" if "." in literal or not kind else f"({literal} ^ 1)"


_SWAPS = {"+": "-", "-": "+", "*": "+", "/": "*", "<": ">=", ">": "<=", "==": "!=", "!=": "=="}
_SWAPS |= {"<=": ">", ">=": "<", "&&": "||", "||": "&&", "===": "!==", "!==": "==="}
_SWAPPED = re.compile(
    r"(?<= )(===|!==|==|!=|<=|>=|&&|\|\||[-+*/<>])(?= )"
    r"|(?<![\w.\[])(\d+)(?![\w.\]])|\b(true|false)\b|(\"[^\"\\\n{}$%]+\")"
)
_LEFT = re.compile(
    r"^\s*(?:import|export \*|export \{|use |package |module |//|#|\*|/\*|mod |extern |@"
    r"|const \w+ = require|struct |type |enum |impl|\}|func \(?\w*\)? *$)|\bfrom ['\"]|require\("
)
_RETURNED = re.compile(r"^(\s*return )([^;{}]+?)(;?\s*)$")
_CHANGE_IN_JS = (
    '((v)=>typeof v==="number"?v+7919:typeof v==="string"?v+"x":typeof v==="boolean"?!v:'
    'Array.isArray(v)?[...v,null]:v==null?"x":v.constructor===Object?{...v,changed:1}:v)'
)


def change_lines(path: str, text: str, old: str) -> tuple[str, list[str]]:
    """Change what new lines return, swap their operators and change their literals.

    Tests within the file are left as they are.

    Returns:
        The changed file, and files in each of which only one line is changed.
    """
    parts = list[str]()
    known, lines = set(old.split("\n")), text.split("\n")
    changed = list(lines)
    for number, line in enumerate(lines):
        if "#[cfg(test)]" in line or "#[test]" in line:
            break
        if line in known or _LEFT.search(line):
            continue
        changed[number] = _change_line(path, line)
        if changed[number] != line:
            part = [*lines[:number], changed[number], *lines[number + 1 :]]
            parts.append("\n".join(part))
        if zero := _RETURNS.match(line):
            value = f"*new({zero[1]})" if zero[1] else "Default::default()"
            part = [*lines[: number + 1], f"if true {{ return {value} }}", *lines[number + 1 :]]
            parts.append("\n".join(part))
    return "\n".join(changed), parts


_RETURNS = re.compile(r"\s*(?:func .*\) ([\w.\[\]*]+)|(?:pub(?:\([^)]*\))? )?fn .*-> .*) \{$")
"""The head of a function of Go or Rust that returns one value."""


def _change_line(path: str, line: str) -> str:
    returned = None if _kind(path) else _RETURNED.match(line)
    if returned and all(returned[2].count(a) == returned[2].count(b) for a, b in ("()", "[]")):
        return f"{returned[1]}{_CHANGE_IN_JS}({returned[2]}){returned[3]}"
    if re.search(r"\b(?:fn|func|function|class|let mut \w+: \[|for)\b", line):
        head, brace, body = line.partition("{")
        return line if re.search(r"\bfor\b", head) else head + brace + _SWAPPED.sub(_swap, body)
    return _SWAPPED.sub(_swap, line)


def _swap(literal: re.Match[str]) -> str:
    if literal[1]:
        return _SWAPS[literal[1]]
    if literal[2]:
        return str(int(literal[2]) ^ 1)
    if literal[3]:
        return "false" if literal[3] == "true" else "true"
    return f'{literal[4][:-1]} changed"'
