from activities.checkpoints.memory import Memory


def test_what_is_held_already_crowds_out_nothing() -> None:
    memory: Memory[str, str] = Memory(3, len)
    memory.keep("one", "a")
    for _ in range(5):
        assert memory.keep("two", "bc") == "bc"
    assert memory.get("one") == "a"


def test_what_is_full_begins_anew() -> None:
    memory: Memory[str, str] = Memory(3, len)
    memory.keep("one", "a")
    memory.keep("two", "bc")
    assert memory.keep("three", "d") == "d"
    assert (memory.get("one"), memory.get("two"), memory.get("three")) == (None, None, "d")
    memory.keep("four", "ef")
    assert memory.get("three") == "d"


def test_what_is_larger_than_all_the_room_is_given_back_nevertheless() -> None:
    memory: Memory[str, str] = Memory(3, len)
    assert memory.keep("one", "abcdef") == "abcdef"
