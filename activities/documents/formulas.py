"""Formulas in one line: those of MathML and of Office."""

from __future__ import annotations

from lxml.etree import _Element

MOST_DEPTH = 50
_SIMPLE = 1
"""Letters of a part that needs no brackets."""


def linear_mathml(math: _Element) -> str:
    """A formula of MathML: `a/b`, `x^2`, `√(y+1)`."""
    return _mathml(math, 0).strip()


def linear_omml(math: _Element) -> str:
    """A formula of Office (`m:oMath`)."""
    return _omml(math, 0).strip()


def _mathml(node: _Element, depth: int) -> str:
    if not isinstance(node.tag, str) or depth > MOST_DEPTH:
        return ""
    tag = node.tag.rpartition("}")[2].rpartition(":")[2]
    if tag in ("annotation", "annotation-xml", "mphantom"):
        return ""
    if tag in ("mi", "mn", "mo", "mtext", "ms"):
        return "".join(node.itertext()).strip()
    parts = [_mathml(child, depth + 1) for child in node]
    if tag == "mfrac" and len(parts) == 2:
        return _over(parts[0], parts[1])
    if tag in ("msup", "mover") and len(parts) == 2:
        return _scripts(parts[0], "", parts[1])
    if tag in ("msub", "munder") and len(parts) == 2:
        return _scripts(parts[0], parts[1], "")
    if tag in ("msubsup", "munderover") and len(parts) == 3:
        return _scripts(*parts)
    if tag == "msqrt":
        return f"√({''.join(parts)})"
    if tag == "mroot" and len(parts) == 2:
        return f"{_bracketed(parts[1])}√({parts[0]})"
    if tag == "mtr":
        return ", ".join(parts) + "; "
    if tag == "mfenced":
        opening, closing = node.get("open", "("), node.get("close", ")")
        return f"{opening}{', '.join(parts)}{closing}"
    own = (node.text or "").strip() if not len(node) else ""
    return own + "".join(parts)


def _omml(node: _Element, depth: int) -> str:
    if not isinstance(node.tag, str) or depth > MOST_DEPTH:
        return ""
    tag = node.tag.rpartition("}")[2]
    if tag in ("t", "delText"):
        return node.text or ""
    if tag.endswith("Pr"):
        return ""

    def part(name: str) -> str:
        return "".join(_omml(child, depth + 1) for child in node if _named(child, name))

    if tag == "f":
        return _over(part("num"), part("den"))
    if tag in ("sSup", "sSub", "sSubSup"):
        return _scripts(part("e"), part("sub"), part("sup"))
    if tag == "sPre":
        return _scripts("", part("sub"), part("sup")) + part("e")
    if tag == "rad":
        degree = part("deg")
        return f"{_bracketed(degree) if degree else ''}√({part('e')})"
    if tag == "nary":
        sign = _property(node, "chr") or "∫"
        return f"{_scripts(sign, part('sub'), part('sup'))} {part('e')}"
    if tag == "d":
        opening, closing = _property(node, "begChr", "("), _property(node, "endChr", ")")
        inner = [_omml(child, depth + 1) for child in node if _named(child, "e")]
        return f"{opening}{_property(node, 'sepChr', '|').join(inner)}{closing}"
    if tag in ("limLow", "limUpp"):
        limit = part("lim")
        return _scripts(part("e"), *((limit, "") if tag == "limLow" else ("", limit)))
    if tag == "func":
        return f"{part('fName')} {part('e')}"
    if tag == "mr":
        return ", ".join(_omml(child, depth + 1) for child in node) + "; "
    return "".join(_omml(child, depth + 1) for child in node)


def _named(node: _Element, name: str) -> bool:
    return isinstance(node.tag, str) and node.tag.rpartition("}")[2] == name


def _property(node: _Element, name: str, otherwise: str = "") -> str:
    for properties in node:
        if isinstance(properties.tag, str) and properties.tag.endswith("Pr"):
            for entry in properties:
                if _named(entry, name):
                    values = [value for key, value in entry.items() if key.endswith("val")]
                    return values[0] if values else ""
    return otherwise


def _over(above: str, below: str) -> str:
    return f"{_bracketed(above)}/{_bracketed(below)}"


def _scripts(base: str, below: str, above: str) -> str:
    lower = f"_{_bracketed(below)}" if below else ""
    upper = f"^{_bracketed(above)}" if above else ""
    return f"{base}{lower}{upper}"


def _bracketed(text: str) -> str:
    text = text.strip()
    whole = text.replace(".", "").replace(",", "").isalnum() or len(text) <= _SIMPLE
    return text if whole else f"({text})"
