"""Scripts: a test's lines are played, and anything unexpected is an error."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from rehearsal import Failure, Reply, Request, Script, call


def request(text: str = "go") -> Request:
    return {"messages": [{"role": "user", "content": text}]}


def test_replies_are_played_in_order_and_requests_kept() -> None:
    with Script(call("list_files"), Failure(503), lambda asked: Reply("third")) as script:
        assert script(request("a")) == call("list_files")
        assert script(request("b")) == Failure(503)
        assert script(request("c")) == Reply("third")
    assert [sent_request["messages"][0]["content"] for sent_request in script.requests] == [
        "a",
        "b",
        "c",
    ]


def test_a_single_function_answers_everything() -> None:
    with Script(lambda asked: Reply(str(len(asked["messages"])))) as script:
        assert script(request()) == script(request()) == Reply("1")


def test_an_unexpected_request_is_refused_and_remembered() -> None:
    script = Script(Reply("one"))
    script(request())
    answer = script(request("more please"))
    assert isinstance(answer, Failure)
    assert answer.code == "unexpected_request"
    with pytest.raises(AssertionError, match=r"unexpected request 2.*more please"):
        script.verify()


def test_an_assertion_in_a_function_reaches_the_test() -> None:
    def check(sent_request: Request) -> Reply:
        raise AssertionError("the todo list is missing")

    script = Script(check)
    assert isinstance(script(request()), Failure)
    with pytest.raises(AssertionError, match="the todo list is missing"):
        script.verify()


def test_replies_left_unused_fail() -> None:
    script = Script(Reply("one"), Reply("two"), Reply("three"))
    script(request())
    with pytest.raises(AssertionError, match=r"2 of 3 replies unused, next: .*two"):
        script.verify()


def test_the_with_block_verifies_unless_it_failed_itself() -> None:
    with pytest.raises(AssertionError, match="unused"), Script(Reply("one")):
        pass
    with pytest.raises(KeyError), Script(Reply("one")):
        raise KeyError


def test_threads_share_a_script() -> None:
    script = Script(*(Reply(str(number)) for number in range(200)))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: script(request()), range(200)))
    script.verify()
    assert {answer.content for answer in answers if isinstance(answer, Reply)} == {
        str(number) for number in range(200)
    }
