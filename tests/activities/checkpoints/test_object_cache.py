from activities.checkpoints.journal import Cache


def test_what_is_held_already_crowds_out_nothing() -> None:
    cache: Cache[str, str] = Cache(3, len)
    cache.put("one", "a")
    for _ in range(5):
        assert cache.put("two", "bc") == "bc"
    assert cache.get("one") == "a"


def test_what_is_full_begins_anew() -> None:
    cache: Cache[str, str] = Cache(3, len)
    cache.put("one", "a")
    cache.put("two", "bc")
    assert cache.put("three", "d") == "d"
    assert (cache.get("one"), cache.get("two"), cache.get("three")) == (None, None, "d")
    cache.put("four", "ef")
    assert cache.get("three") == "d"


def test_what_is_larger_than_all_the_room_is_given_back_nevertheless() -> None:
    cache: Cache[str, str] = Cache(3, len)
    assert cache.put("one", "abcdef") == "abcdef"
