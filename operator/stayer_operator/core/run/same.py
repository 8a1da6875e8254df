"""Identity as a key: what was made of an object is kept without comparing the object."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Same(Generic[T]):
    """An object that nobody changes, equal to itself only. Whoever keeps the key keeps the object,
    so that no other one can be taken for it.
    """

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)
