"""Reads the graph's schema file and lays an agent's own declarations over it."""

from __future__ import annotations

from pathlib import Path

from config.files import read_model
from config.schema.agent import Problem
from config.schema.graph import GraphSchema


def load_graph_schema(path: Path) -> GraphSchema:
    """The schema of the file; empty when there is none.

    Raises:
        Problem: names the file and the key.
    """
    if not path.exists():
        return GraphSchema()
    schema = read_model(path, GraphSchema)
    if unmet := schema.unmet():
        raise Problem(f"{path}: {unmet}")
    return schema


def extended(base: GraphSchema, more: GraphSchema, source: Path) -> GraphSchema:
    """The schema with an agent's own kinds. A kind that is there may get more properties and ends;
    what it has stays, since other jobs rely on it.

    Raises:
        Problem: names the agent's file and the key.
    """
    made = base.model_copy(deep=True)
    for name, node in more.nodes.items():
        present = made.nodes.setdefault(name, node)
        if present.key != node.key:
            raise Problem(
                f"{source}: graph.nodes.{name}.key: found {node.key!r}, expected {present.key!r}, "
                "which the graph has"
            )
        present.known_by += [each for each in node.known_by if each not in present.known_by]
    for name, relation in more.relations.items():
        there = made.relations.setdefault(name, relation)
        there.ends += [pair for pair in relation.ends if pair not in there.ends]
    for group, theirs, ours in (
        ("nodes", more.nodes, made.nodes),
        ("relations", more.relations, made.relations),
    ):
        for name in theirs:
            have = ours[name].properties
            for key, held in theirs[name].properties.items():
                if have.setdefault(key, held) != held:
                    raise Problem(
                        f"{source}: graph.{group}.{name}.properties.{key}: the graph declares it "
                        "otherwise, expected a name of its own"
                    )
    if unmet := made.unmet():
        raise Problem(f"{source}: graph.{unmet}")
    return made
