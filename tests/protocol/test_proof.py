"""Commands that prove a feature."""

from protocol.proof import proof_command_without_cd


def test_a_command_runs_at_the_top_of_the_repository() -> None:
    assert proof_command_without_cd("cd repo && pytest", "repo") == "pytest"
    assert (
        proof_command_without_cd(" cd ./repo && cd web && npm test", "repo") == "cd web && npm test"
    )
    assert proof_command_without_cd("cd report && pytest", "repo") == "cd report && pytest"
