"""A text that never shows itself."""

from typing import Final


class Secret:
    """A text that never shows itself: repr, str and format give a mask; `reveal` gives the text."""

    __slots__ = ("_text",)
    MASK: Final = "********"

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that hands it to a process."""
        return self._text

    def __repr__(self) -> str:
        return self.MASK

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret is never serialised")
