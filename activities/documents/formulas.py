"""Formulas of MathML and Office as one line of text."""

from lxml.etree import _Element

MAX_DEPTH = 50
_SIMPLE = 1
"""Characters of a part that needs no brackets."""


def linearize_mathml(math: _Element) -> str:
    """Convert a MathML formula: `a/b`, `x^2`, `√(y+1)`."""
    return _mathml_text(math, 0).strip()


def linearize_omml(math: _Element) -> str:
    """Convert an Office formula (`m:oMath`)."""
    return _omml_text(math, 0).strip()


def _mathml_text(node: _Element, depth: int) -> str:
    if not isinstance(node.tag, str) or depth > MAX_DEPTH:
        return ""
    tag = node.tag.rpartition("}")[2].rpartition(":")[2]
    if tag in ("annotation", "annotation-xml", "mphantom"):
        return ""
    if tag in ("mi", "mn", "mo", "mtext", "ms"):
        return "".join(node.itertext()).strip()
    parts = [_mathml_text(child, depth + 1) for child in node]
    if tag == "mfrac" and len(parts) == 2:
        return _format_formula_fraction(parts[0], parts[1])
    if tag in ("msup", "mover") and len(parts) == 2:
        return _add_formula_scripts(parts[0], "", parts[1])
    if tag in ("msub", "munder") and len(parts) == 2:
        return _add_formula_scripts(parts[0], parts[1], "")
    if tag in ("msubsup", "munderover") and len(parts) == 3:
        return _add_formula_scripts(*parts)
    if tag == "msqrt":
        return f"√({''.join(parts)})"
    if tag == "mroot" and len(parts) == 2:
        return f"{_bracket_formula(parts[1])}√({parts[0]})"
    if tag == "mtr":
        return ", ".join(parts) + "; "
    if tag == "mfenced":
        opening, closing = node.get("open", "("), node.get("close", ")")
        return f"{opening}{', '.join(parts)}{closing}"
    text = (node.text or "").strip() if not len(node) else ""
    return text + "".join(parts)


def _omml_text(node: _Element, depth: int) -> str:
    if not isinstance(node.tag, str) or depth > MAX_DEPTH:
        return ""
    tag = node.tag.rpartition("}")[2]
    if tag in ("t", "delText"):
        return node.text or ""
    if tag.endswith("Pr"):
        return ""

    def part_text(name: str) -> str:
        return "".join(
            _omml_text(child, depth + 1) for child in node if _has_local_name(child, name)
        )

    if tag == "f":
        return _format_formula_fraction(part_text("num"), part_text("den"))
    if tag in ("sSup", "sSub", "sSubSup"):
        return _add_formula_scripts(part_text("e"), part_text("sub"), part_text("sup"))
    if tag == "sPre":
        return _add_formula_scripts("", part_text("sub"), part_text("sup")) + part_text("e")
    if tag == "rad":
        degree = part_text("deg")
        return f"{_bracket_formula(degree) if degree else ''}√({part_text('e')})"
    if tag == "nary":
        sign = _omml_property(node, "chr") or "∫"
        return f"{_add_formula_scripts(sign, part_text('sub'), part_text('sup'))} {part_text('e')}"
    if tag == "d":
        opening, closing = (
            _omml_property(node, "begChr", "("),
            _omml_property(node, "endChr", ")"),
        )
        inner = [_omml_text(child, depth + 1) for child in node if _has_local_name(child, "e")]
        return f"{opening}{_omml_property(node, 'sepChr', '|').join(inner)}{closing}"
    if tag in ("limLow", "limUpp"):
        limit = part_text("lim")
        return _add_formula_scripts(
            part_text("e"), *((limit, "") if tag == "limLow" else ("", limit))
        )
    if tag == "func":
        return f"{part_text('fName')} {part_text('e')}"
    if tag == "mr":
        return ", ".join(_omml_text(child, depth + 1) for child in node) + "; "
    return "".join(_omml_text(child, depth + 1) for child in node)


def _has_local_name(node: _Element, name: str) -> bool:
    return isinstance(node.tag, str) and node.tag.rpartition("}")[2] == name


def _omml_property(node: _Element, name: str, otherwise: str = "") -> str:
    for properties in node:
        if isinstance(properties.tag, str) and properties.tag.endswith("Pr"):
            for entry in properties:
                if _has_local_name(entry, name):
                    values = [value for key, value in entry.items() if key.endswith("val")]
                    return values[0] if values else ""
    return otherwise


def _format_formula_fraction(above: str, below: str) -> str:
    return f"{_bracket_formula(above)}/{_bracket_formula(below)}"


def _add_formula_scripts(base: str, below: str, above: str) -> str:
    lower = f"_{_bracket_formula(below)}" if below else ""
    upper = f"^{_bracket_formula(above)}" if above else ""
    return f"{base}{lower}{upper}"


def _bracket_formula(text: str) -> str:
    text = text.strip()
    is_simple = text.replace(".", "").replace(",", "").isalnum() or len(text) <= _SIMPLE
    return text if is_simple else f"({text})"
