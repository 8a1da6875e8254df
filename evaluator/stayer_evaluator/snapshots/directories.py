"""Opening directories of a hostile tree: part by part, no link ever followed."""

import os
from types import TracebackType
from typing import Self

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Directories:
    """Descriptors of the directories on one path; the next path reuses what it shares."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._stack: list[tuple[str, int]] = []
        self._here: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave(0)

    def open(self, directory: str) -> int:
        """A descriptor of `directory` ("" or with trailing slash), valid until the next call.

        Raises OSError when a part is missing, is no directory or is a link.
        """
        if directory == self._here:
            return self._top()
        self._here = None  # until all of it is open
        parts = directory.split("/")[:-1]
        shared = 0
        while shared < min(len(parts), len(self._stack)) and (
            self._stack[shared][0] == parts[shared]
        ):
            shared += 1
        self._leave(shared)
        for part in parts[shared:]:
            self._stack.append((part, os.open(part, OPEN_DIRECTORY, dir_fd=self._top())))
        self._here = directory
        return self._top()

    def _top(self) -> int:
        return self._stack[-1][1] if self._stack else self._root

    def _leave(self, depth: int) -> None:
        while len(self._stack) > depth:
            os.close(self._stack.pop()[1])
