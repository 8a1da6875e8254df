"""The mirror against late, repeated and contradictory sights of objects."""

from __future__ import annotations

from makers_operator_shell import WidgetView
from stayer_operator.adapters.mirror import Change, Mirror


def widget(version: int, *, name: str = "w", uid: str = "u1", colour: str = "") -> WidgetView:
    return WidgetView(
        namespace="lab", name=name, uid=uid, resource_version=str(version), colour=colour
    )


def make() -> tuple[Mirror[WidgetView], list[Change[WidgetView]]]:
    mirror: Mirror[WidgetView] = Mirror(index=lambda view: view.colour)
    changes: list[Change[WidgetView]] = []
    mirror.listen(changes.append)
    return mirror, changes


def test_a_repeated_sight_tells_nobody() -> None:
    mirror, changes = make()
    mirror.put(widget(1))
    mirror.put(widget(1))
    assert len(changes) == 1


def test_only_the_sights_that_are_held_need_no_look() -> None:
    mirror, _ = make()
    mirror.put(widget(5))
    assert mirror.holds_version("5")
    assert not mirror.holds_version("6")

    mirror.put(widget(6))
    mirror.put(widget(5))
    assert mirror.holds_version("6")
    assert not mirror.holds_version("5")

    mirror.remove("lab", "w", "u1")
    assert not mirror.holds_version("6")


def test_an_older_sight_does_not_undo_our_own_write() -> None:
    mirror, _ = make()
    mirror.put(widget(9, colour="written"))
    mirror.put(widget(5, colour="watched late"))
    held = mirror.get("lab", "w")
    assert held is not None
    assert held.colour == "written"
    assert mirror.by("watched late") == ()


def test_versions_are_compared_as_numbers() -> None:
    mirror, _ = make()
    mirror.put(widget(99))
    mirror.put(widget(100, colour="newer"))
    assert len(mirror.by("newer")) == 1


def test_a_late_answer_does_not_raise_a_deleted_object() -> None:
    mirror, changes = make()
    mirror.put(widget(1))
    mirror.remove("lab", "w", "u1")
    mirror.put(widget(2))
    assert mirror.get("lab", "w") is None
    assert changes[-1].new is None


def test_removing_the_predecessor_leaves_the_successor() -> None:
    mirror, _ = make()
    mirror.put(widget(1, uid="old"))
    mirror.put(widget(5, uid="new"))
    mirror.remove("lab", "w", "old")
    held = mirror.get("lab", "w")
    assert held is not None
    assert held.uid == "new"


def test_a_list_does_not_delete_what_was_created_after_it() -> None:
    mirror, _ = make()
    mirror.put(widget(3, name="before", uid="b"))
    mirror.put(widget(20, name="after", uid="a"))
    mirror.replace("lab", [], "10")
    assert mirror.get("lab", "before") is None
    assert mirror.get("lab", "after") is not None


def test_only_what_came_by_a_list_is_marked_as_listed() -> None:
    mirror, changes = make()
    mirror.replace("lab", [widget(1, name="listed", uid="l")], "1")
    mirror.put(widget(2, name="seen", uid="s"))
    assert [change.listed for change in changes] == [True, False]


def test_the_index_follows_changes_and_forgets_empty_groups() -> None:
    mirror, _ = make()
    mirror.put(widget(1, colour="red"))
    mirror.put(widget(2, colour="blue"))
    assert mirror.by("red") == ()
    assert [view.name for view in mirror.by("blue")] == ["w"]
    mirror.remove("lab", "w", "u1")
    assert mirror.by("blue") == ()
