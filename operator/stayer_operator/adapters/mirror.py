"""Our copy of the server's objects of one kind: small frozen views, kept in step by reflectors.

Level-based: listeners hear that something about a key changed and look here for what is true now.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class ObservedView(Protocol):
    """What the mirror must know of a view."""

    @property
    def namespace(self) -> str:
        """Empty for objects without a namespace."""

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


V = TypeVar("V", bound=ObservedView)
Key = tuple[str, str]

BURIED = 2000  # UIDs of deleted objects that are remembered: more than requests can be under way


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[V]):
    """One object before and after; `old` is None for a new one, `new` for a deleted one.

    `listed`: found by a LIST, so what happened to it before is not known.
    """

    old: V | None
    new: V | None
    listed: bool = False


Listener = Callable[[Change[V]], None]


class Mirror(Generic[V]):
    """Views by (namespace, name) and by one more property, such as the owner's UID."""

    def __init__(self, index: Callable[[V], Hashable] | None = None) -> None:
        self._views: dict[Key, V] = {}
        self._index = index
        self._by: dict[Hashable, dict[Key, V]] = {}
        self._buried: dict[str, None] = {}
        self._versions: set[str] = set()
        self._listeners: list[Listener[V]] = []

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Iterator[V]:
        """All views; the caller does not await while iterating."""
        return iter(self._views.values())

    def get(self, namespace: str, name: str) -> V | None:
        """The view of an object, None when there is none."""
        return self._views.get((namespace, name))

    def holds_version(self, version: str) -> bool:
        """Some view is of that version, which the API server gives to one sight of one object."""
        return version in self._versions

    def by(self, value: Hashable) -> tuple[V, ...]:
        """All views with this value of the index."""
        return tuple(self._by.get(value, {}).values())

    def listen(self, listener: Listener[V]) -> None:
        """Call `listener` at every change, synchronously."""
        self._listeners.append(listener)

    def put(self, view: V, *, listed: bool = False) -> None:
        """An object as it was seen; older sights than the one held are ignored.

        Answers to our own writes come here too, so that the next plan sees what the last one did.
        """
        key = (view.namespace, view.name)
        old = self._views.get(key)
        if view.uid in self._buried or (old is not None and not _is_newer(view, old)):
            return
        if old is not None:
            self._unlist(key, old)
            self._versions.discard(old.resource_version)
        self._views[key] = view
        self._versions.add(view.resource_version)
        if self._index is not None:
            self._by.setdefault(self._index(view), {})[key] = view
        self._tell(Change(old=old, new=view, listed=listed))

    def remove(self, namespace: str, name: str, uid: str) -> None:
        """The object is gone. Another one of the same name with another UID stays."""
        key = (namespace, name)
        old = self._views.get(key)
        if old is None or old.uid != uid:
            return
        del self._views[key]
        self._versions.discard(old.resource_version)
        self._unlist(key, old)
        self._bury(uid)
        self._tell(Change(old=old, new=None))

    def replace(self, namespace: str | None, views: Iterable[V], version: str) -> None:
        """What a whole LIST at `version` found in a namespace (None: everywhere).

        Objects that are held but not listed were deleted while nobody watched: their deletion is
        told like any other. Those that we saw after the LIST was taken stay.
        """
        listed = {(view.namespace, view.name): view for view in views}
        gone = [
            held
            for key, held in self._views.items()
            if key not in listed
            and (namespace is None or key[0] == namespace)
            and not _is_later(held.resource_version, version)
        ]
        for held in gone:
            self.remove(held.namespace, held.name, held.uid)
        for view in listed.values():
            self.put(view, listed=True)

    def _bury(self, uid: str) -> None:
        # The answer to a write of ours may be read after the watch told the object's deletion;
        # it must not raise a ghost. A UID never comes back, and such answers are seconds late.
        self._buried[uid] = None
        if len(self._buried) > BURIED:
            del self._buried[next(iter(self._buried))]

    def _unlist(self, key: Key, view: V) -> None:
        if self._index is None:
            return
        value = self._index(view)
        group = self._by.get(value, {})
        group.pop(key, None)
        if not group:
            self._by.pop(value, None)

    def _tell(self, change: Change[V]) -> None:
        for listener in self._listeners:
            listener(change)


def _is_newer(view: ObservedView, held: ObservedView) -> bool:
    if view.resource_version == held.resource_version:
        return False
    # Resource versions are decimal and comparable (API conventions since 1.35, true of etcd
    # before); a server with other ones gets last-seen-wins.
    if view.resource_version.isdecimal() and held.resource_version.isdecimal():
        return int(view.resource_version) > int(held.resource_version)
    return True


def _is_later(version: str, than: str) -> bool:
    return version.isdecimal() and than.isdecimal() and int(version) > int(than)
