"""Numbers of things, as people read them."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 task`, `2 tasks`; `many` where it is not just an s more."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
