"""The informer over real HTTP against an API server that misbehaves on command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from makers_operator_shell import (
    WIDGETS,
    FakeApiServer,
    WidgetView,
    connect,
    eventually,
    status,
    view_widget,
)
from stayer_operator.adapters import wire
from stayer_operator.adapters.informer import Informer, InformerLimits
from stayer_operator.adapters.mirror import Change, Mirror

LIMITS = InformerLimits(page=2, inactivity_seconds=0.3, first_pause=0.01, longest_pause=0.05)


def follow(
    server: FakeApiServer,
    scenario: Callable[[Mirror[WidgetView], list[Change[WidgetView]]], Awaitable[None]],
    *,
    namespace: str | None = "lab",
    limits: InformerLimits = LIMITS,
) -> None:
    async def main() -> None:
        mirror: Mirror[WidgetView] = Mirror(index=lambda view: view.colour)
        changes: list[Change[WidgetView]] = []
        mirror.listen(changes.append)
        async with connect(server) as client:
            informer = Informer(
                client, WIDGETS, mirror, view_widget, namespace=namespace, limits=limits
            )
            task = asyncio.create_task(informer.run())
            try:
                await asyncio.wait_for(informer.synced.wait(), 5)
                await scenario(mirror, changes)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_lists_in_pages_and_follows_changes() -> None:
    server = FakeApiServer()
    for number in range(5):
        server.put("widgets", "lab", f"w{number}", colour="red")

    async def scenario(mirror: Mirror[WidgetView], _: object) -> None:
        assert len(mirror) == 5
        assert len(mirror.by("red")) == 5
        server.put("widgets", "lab", "w0", colour="blue")
        server.drop("widgets", "lab", "w1")
        await eventually(lambda: len(mirror.by("blue")) == 1 and len(mirror) == 4)
        assert len(mirror.by("red")) == 3

    follow(server, scenario)
    assert [verb for verb in server.verbs() if verb == "GET"] == ["GET"] * 3
    assert all(query.get("limit") == "2" for verb, _, query in server.requests if verb == "GET")


def test_an_expired_page_starts_the_list_anew() -> None:
    server = FakeApiServer(page_expires=True)
    for number in range(3):
        server.put("widgets", "lab", f"w{number}")

    async def scenario(mirror: Mirror[WidgetView], _: object) -> None:
        assert len(mirror) == 3

    follow(server, scenario)


def test_relist_after_410_tells_deletions_of_the_gap() -> None:
    server = FakeApiServer()
    for number in range(4):
        server.put("widgets", "lab", f"w{number}")

    async def scenario(mirror: Mirror[WidgetView], changes: list[Change[WidgetView]]) -> None:
        await eventually(lambda: bool(server.watchers))
        changes.clear()
        server.mute = True
        server.drop("widgets", "lab", "w1")
        server.drop("widgets", "lab", "w2")
        server.put("widgets", "lab", "w3", colour="new")
        server.mute = False
        server.compact()
        await eventually(lambda: len(mirror) == 2)
        await eventually(lambda: len(changes) == 3)
        gone = sorted(change.old.name for change in changes if change.new is None and change.old)
        assert gone == ["w1", "w2"]
        # w0 did not change: nobody is told of it again.
        assert [change.new.name for change in changes if change.new] == ["w3"]

    follow(server, scenario)


def test_an_object_made_anew_in_the_gap_is_one_change_to_another_uid() -> None:
    server = FakeApiServer()
    server.put("widgets", "lab", "w0")

    async def scenario(mirror: Mirror[WidgetView], changes: list[Change[WidgetView]]) -> None:
        await eventually(lambda: bool(server.watchers))
        changes.clear()
        server.mute = True
        server.drop("widgets", "lab", "w0")
        server.put("widgets", "lab", "w0")
        server.mute = False
        server.compact()
        await eventually(lambda: len(changes) == 1)
        assert changes[0].old and changes[0].new
        assert changes[0].old.uid != changes[0].new.uid

    follow(server, scenario)


def test_a_silent_watch_is_left_and_resumed_without_a_list() -> None:
    server = FakeApiServer()
    server.put("widgets", "lab", "w0")

    async def scenario(mirror: Mirror[WidgetView], _: object) -> None:
        await eventually(lambda: bool(server.watchers))
        server.mute = True
        server.put("widgets", "lab", "w1")
        await eventually(lambda: mirror.get("lab", "w1") is not None)

    follow(server, scenario)
    assert server.verbs().count("GET") == 1
    assert server.verbs().count("WATCH") >= 2


def test_bookmarks_move_the_version_to_resume_from() -> None:
    server = FakeApiServer()
    server.put("widgets", "lab", "w0")

    async def scenario(mirror: Mirror[WidgetView], _: object) -> None:
        await eventually(lambda: bool(server.watchers))
        for _count in range(3):
            server.bookmark()
        marked = str(server.version)
        await asyncio.sleep(0)
        server.end_watches()
        await eventually(lambda: server.verbs().count("WATCH") == 2)
        resumed = [query for verb, _, query in server.requests if verb == "WATCH"][-1]
        assert resumed["resourceVersion"] == marked
        assert resumed["allowWatchBookmarks"] == "true"

    follow(server, scenario)
    assert server.verbs().count("GET") == 1


def test_refused_lists_are_retried_until_they_succeed() -> None:
    server = FakeApiServer(
        refusals=[
            status(403, "Forbidden", "no"),
            status(500, "InternalError", "etcd"),
            status(429, "TooManyRequests", "slow down", **{"Retry-After": "0"}),
        ]
    )
    server.put("widgets", "lab", "w0")

    async def scenario(mirror: Mirror[WidgetView], _: object) -> None:
        assert len(mirror) == 1

    follow(server, scenario)


def test_a_watch_that_ends_at_once_does_not_spin() -> None:
    server = FakeApiServer()
    server.on_request = lambda request: (
        asyncio.get_running_loop().call_later(0.001, server.end_watches) and None
        if request.query.get("watch")
        else None
    )
    slow = InformerLimits(first_pause=0.1, longest_pause=0.2)

    async def scenario(_mirror: Mirror[WidgetView], _: object) -> None:
        await asyncio.sleep(0.4)

    follow(server, scenario, limits=slow)
    assert server.verbs().count("WATCH") < 10


def test_namespaces_of_one_mirror_do_not_delete_each_other() -> None:
    server = FakeApiServer()
    server.put("widgets", "lab", "a")
    server.put("widgets", "other", "b")

    async def main() -> None:
        mirror: Mirror[WidgetView] = Mirror()
        async with connect(server) as client:
            informers = [
                Informer(client, WIDGETS, mirror, view_widget, namespace=name, limits=LIMITS)
                for name in ("lab", "other")
            ]
            tasks = [asyncio.create_task(informer.run()) for informer in informers]
            for informer in informers:
                await asyncio.wait_for(informer.synced.wait(), 5)
            assert {view.name for view in mirror} == {"a", "b"}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_what_an_answer_has_shown_is_not_decoded_again() -> None:
    server = FakeApiServer()
    server.put("widgets", "lab", "w0")
    decoded: list[bytes] = []

    def decode(data: bytes) -> Any:
        decoded.append(data)
        return wire.anything(data)

    async def main() -> None:
        mirror: Mirror[WidgetView] = Mirror(index=lambda view: view.colour)
        decoders = wire.Decoders(one=decode, page=wire.anything, event=decode)
        async with connect(server) as client:
            informer = Informer(
                client, WIDGETS, mirror, view_widget, decoders=decoders, namespace="lab"
            )
            task = asyncio.create_task(informer.run())
            await asyncio.wait_for(informer.synced.wait(), 5)
            await eventually(lambda: bool(server.watchers))
            server.mute = True
            shown = server.put("widgets", "lab", "w0", colour="ours")
            server.mute = False
            mirror.put(view_widget(shown))
            server.end_watches()  # the next one begins before our write
            await eventually(lambda: server.verbs().count("WATCH") == 2)
            server.put("widgets", "lab", "w0", colour="theirs")
            await eventually(lambda: len(mirror.by("theirs")) == 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert [b"theirs" in line for line in decoded] == [True]


def test_a_flood_of_events_is_told_without_a_pause_at_each_piece() -> None:
    """12 MB at once; a pause of half a second at every piece that is read would take half a
    minute, and a stream that never ends would be told later and later.
    """
    server = FakeApiServer()

    async def scenario(mirror: Mirror[WidgetView], _: object) -> None:
        await eventually(lambda: bool(server.watchers))
        for number in range(750):
            server.put("widgets", "lab", f"w{number}", ballast="x" * 16_000)
        await eventually(lambda: len(mirror) == 750, seconds=8)

    follow(server, scenario, limits=InformerLimits())
