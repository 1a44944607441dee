"""Text that comes from jobs, made fit to be shown."""

from rich.text import Text


def plain(text: str) -> Text:
    """Text of a job's own, shown as it is: no markup, no control characters for the terminal."""
    return Text("".join(character for character in text if character.isprintable() or character == "\n"))
