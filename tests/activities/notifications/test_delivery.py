"""What a delivered notification says."""

from activities.notifications.delivery import _notification_body
from protocol.notification_requests import Notification


def test_neither_a_name_nor_an_agents_text_mentions_people_or_hides_a_link() -> None:
    text = "a <b, x@y.org: <!channel> <@U1> @everyone <https://h.org|log in> [in](http://h.org)"
    notification = Notification(
        key="1", event="waiting", job="<!here>", status="waiting", text=text, content="@here: 3 < 4"
    )
    body = _notification_body(notification)
    assert body["text"].replace("\N{WORD JOINER}", "|") == (
        "a <b, x@y.org: <|!channel> <|@U1> @|everyone <|https://h.org|log in> "
        "[in]|(http://h.org)\n@|here: 3 < 4"
    )
    assert (body["job"], body["content"]) == ("<!here>", "@here: 3 < 4")
