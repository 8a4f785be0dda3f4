"""Reads the schema of the graph from its files. Each error names the file and the key."""

from pathlib import Path

from config.layers import Layers
from config.schema.agent import ConfigError
from config.schema.graph import GraphSchema
from config.yaml_files import read_yaml_model


def load_graph_schema(path: Path) -> GraphSchema:
    """The schema in the file; empty without a file.

    Raises ConfigError: the file is invalid; the message names file and key.
    """
    if not path.exists():
        return GraphSchema()
    schema = read_yaml_model(path, GraphSchema)
    if unmet := schema.find_undeclared():
        raise ConfigError(f"{path}: {unmet}")
    return schema


def extend_graph_schema(base: GraphSchema, more: GraphSchema, source: Path) -> GraphSchema:
    """The schema extended by an agent's own kinds.

    An existing kind may get further properties and ends. Its present ones cannot change, since
    other jobs rely on them.

    Raises:
        ConfigError: the extension is invalid; the message names the agent's file and the key.
    """
    schema = base.model_copy(deep=True)
    for name, node in more.nodes.items():
        present = schema.nodes.setdefault(name, node)
        if present.key != node.key:
            raise ConfigError(
                f"{source}: graph.nodes.{name}.key: found {node.key!r}, expected {present.key!r}, "
                "which the graph has"
            )
        present.known_by += [each for each in node.known_by if each not in present.known_by]
    for name, relation in more.relations.items():
        known = schema.relations.setdefault(name, relation)
        known.ends += [pair for pair in relation.ends if pair not in known.ends]
    for group, theirs, ours in (
        ("nodes", more.nodes, schema.nodes),
        ("relations", more.relations, schema.relations),
    ):
        for name in theirs:
            have = ours[name].properties
            for key, declared in theirs[name].properties.items():
                if have.setdefault(key, declared) != declared:
                    raise ConfigError(
                        f"{source}: graph.{group}.{name}.properties.{key}: the graph declares it "
                        "otherwise, expected a name of its own"
                    )
    if unmet := schema.find_undeclared():
        raise ConfigError(f"{source}: graph.{unmet}")
    return schema


def load_layered_graph_schema(layers: Layers) -> GraphSchema:
    """The shipped graph schema with the additions of each folder above.

    Raises ConfigError: a schema is invalid; the message names file and key.
    """
    shipped, *additions = reversed([folder / "graph" / "schema.yaml" for folder in layers.folders])
    schema = load_graph_schema(shipped)
    for path in additions:
        if path.is_file():
            schema = extend_graph_schema(schema, read_yaml_model(path, GraphSchema), path)
    return schema
