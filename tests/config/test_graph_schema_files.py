"""The graph's schema file: every error names the file and the key."""

from pathlib import Path

import pytest

from config.agent_files import amend_agent_config, load_agent
from config.graph_schema_files import extend_graph_schema, load_graph_schema
from config.layers import SHIPPED
from config.schema.agent import ConfigError
from config.schema.graph import GraphSchema

NODE = "nodes:\n  Tea:\n    key: id\n    properties:\n      id: {type: text}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            NODE.replace("key", "kee"),
            "nodes.Tea.key: field required; nodes.Tea.kee: unknown key, expected key?",
        ),
        (NODE.replace("text", "string"), "nodes.Tea.properties.id.type: input should be"),
        (NODE.replace("key: id", "key: name"), "nodes.Tea: name is not among its properties"),
        (NODE.replace("Tea", "Green tea"), "nodes.Green tea: string should match pattern"),
        (f"{NODE}relations:\n  OF: {{ends: [[Tea, Cup]]}}\n", "relations.OF.ends.0: found 'Cup'"),
    ],
)
def test_a_broken_file(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as problem:
        load_graph_schema(path)
    assert str(problem.value).startswith(f"{path}: {complaint}")


def test_an_agent_changes_nothing_that_others_rely_on() -> None:
    base = load_graph_schema(SHIPPED / "graph" / "schema.yaml")
    id_only = {"id": {"type": "text", "required": True}}
    for more, complaint in (
        ({"nodes": {"Message": {"key": "no", "properties": {"no": {"type": "text"}}}}}, "key"),
        (
            {"nodes": {"Message": {"key": "id", "properties": {"id": {"type": "text"}}}}},
            "otherwise",
        ),
        ({"relations": {"OF": {"ends": [["Message", "Cup"]]}}}, "graph.relations.OF.ends.0"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            extend_graph_schema(base, GraphSchema.model_validate(more), Path("agent.yaml"))
    more = {
        "nodes": {"Message": {"key": "id", "properties": {**id_only, "x": {"type": "integer"}}}}
    }
    extended = extend_graph_schema(base, GraphSchema.model_validate(more), Path("agent.yaml"))
    assert extended.nodes["Message"].properties["x"].type == "integer"
    assert "name" in extended.nodes["Message"].properties
    assert "x" not in base.nodes["Message"].properties


def test_a_fork_may_declare_more_of_the_graph() -> None:
    pinned = load_agent("validator")
    place = {
        "description": "Where something is.",
        "key": "id",
        "properties": {"id": {"type": "text"}},
    }
    amended = amend_agent_config(pinned, {"graph.nodes": {"Place": place}})
    assert amended.graph_schema.nodes.keys() == pinned.graph_schema.nodes.keys() | {"Place"}
    assert amend_agent_config(pinned, {}).graph_schema == pinned.graph_schema
