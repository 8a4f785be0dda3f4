"""The tools in memory; their answers have the form of the product's."""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from typing import Any


class Refused(Exception):
    """A tool's refusal."""


class FakeTools:
    """Tools over a dictionary of files."""

    files: dict[str, str]
    documents: dict[str, list[str]]
    kind: str
    citations = 0
    cited: dict[str, str]
    requirements = 0

    # Files

    def text(self, path: str) -> str:
        if path not in self.files:
            raise Refused(f"{path} does not exist.")
        return self.files[path]

    def read_file(self, path: str, offset: int = 1, limit: int = 500) -> str:
        lines = self.text(path).splitlines()
        if offset > max(len(lines), 1):
            raise Refused(f"{path} has {len(lines)} lines; offset {offset} is past its end.")
        shown = lines[offset - 1 : offset - 1 + limit]
        header = f"{path}, lines {offset}-{offset - 1 + len(shown)} of {len(lines)}"
        return "\n".join([header, *(f"{n:6}\t{line}" for n, line in enumerate(shown, offset))])

    def write_file(self, path: str, content: str) -> str:
        if path == "instructions.md" or path.startswith("documents/"):
            raise Refused(f"nobody writes {path}")
        if self.kind == "tactical" and path == "plan.md":
            raise Refused("plan.md belongs to strategic phases")
        self.files[path] = content
        return f"Wrote {len(content):,} characters to {path}."

    def append_file(self, path: str, content: str) -> str:
        self.files[path] = self.files.get(path, "") + content
        return f"Appended {len(content):,} characters to {path}."

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        if self.text(path).count(old) != 1:
            raise Refused(f"{path} does not contain that text once.")
        self.files[path] = self.files[path].replace(old, new)
        return f"Replaced 1 passage in {path}."

    def list_files(self, path: str = "", pattern: str | None = None) -> str:
        inside = sorted(name for name in self.files if name.startswith(f"{path}/" if path else ""))
        found = [name for name in inside if fnmatch.fnmatchcase(name, pattern or "*")]
        lines = [f"{name}  {len(self.files[name]):,}" for name in found]
        return "\n".join(lines) or f"Nothing in {path or 'the workspace'}."

    def search_files(self, query: str, path: str = "", mode: str = "text") -> str:
        hits = [
            f"{name}:{number}: {line}"
            for name in sorted(self.files)
            if name.startswith(path)
            for number, line in enumerate(self.files[name].splitlines(), 1)
            if query.lower() in line.lower()
        ]
        return "\n".join(hits[:100]) or f"Nothing matches {query!r}."

    # Documents and requirements

    def pages_of(self, path: str) -> list[str]:
        if path not in self.documents:
            raise Refused(f"{path} does not exist.")
        return self.documents[path]

    def extract_document_text(self, path: str, pages: str | None = None) -> str:
        return "\n".join(self.pages_of(path))

    def extract_entity_mentions(self, path: str) -> str:
        return "controller · 3 mentions"

    def assess_relevance(self, text: str) -> str:
        return "relevance 0.20: no obligation" if "perhaps" in text else "relevance 0.80"

    def identify_requirement_candidates(self, path: str) -> str:
        found: list[dict[str, Any]] = []
        for number, page in enumerate(self.pages_of(path), 1):
            for line in page.splitlines():
                if "must" in line:
                    confidence = 0.55 if "perhaps" in line else 0.9
                    entry = {"id": f"C-{len(found) + 1:03d}", "page": number, "text": line}
                    found.append(entry | {"modality": "obligation", "confidence": confidence})
        lines = ["", f"## {path}", ""]
        lines += [
            f"- {item['id']} · p.{item['page']} · obligation · {item['confidence']:.2f} · "
            f"{item['text']}"
            for item in found
        ]
        self.append_file("candidates/candidates.md", "\n".join(lines) + "\n")
        return f"{len(found)} candidates in {path}, all in candidates/candidates.md."

    def cite_document(self, path: str, page: int, quote: str) -> str:
        if quote not in self.pages_of(path)[page - 1]:
            raise Refused(f"That quote is not on page {page} of {path}.")
        self.citations += 1
        self.cited[f"CIT-{self.citations:04d}"] = path
        return f"citation CIT-{self.citations:04d}: {path}, page {page}"

    def add_requirement(
        self,
        text: str,
        type: str,
        citations: list[str],
        reasoning: str,
        confidence: float,
        candidate: str | None = None,
    ) -> str:
        assert type in ("functional", "data", "process", "legal", "quality", "constraint")
        self.requirements += 1
        folder = f"requirements/req_{self.requirements:03d}"
        document = self.cited[citations[0]]
        made = {"text": text, "type": type, "source": document, "candidate": candidate}
        self.files[f"{folder}/final.json"] = json.dumps(made)
        return f"REQ-{self.requirements:03d} written to {folder}/"

    def collect_requirements(self) -> str:
        made = [json.loads(self.files[name]) for name in self.files if name.endswith("/final.json")]
        self.files["output/requirements.json"] = json.dumps(made, indent=1)
        types = Counter(entry["type"] for entry in made)
        count = self.files.get("candidates/candidates.md", "").count("- C-")
        lines = [f"Wrote {len(made)} requirements to output/requirements.json."]
        if made:
            lines.append(f"By type: {', '.join(f'{name} {n}' for name, n in types.items())}.")
        return "\n".join([*lines, f"No requirement refers to some of {count} candidates:"])
