"""How long work shows its progress: a moving line on a terminal, plain lines everywhere else."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape

# Logs have no width of their own, and a table that is folded to 80 columns can't be read there.
_LOG_COLUMNS = 160


def console() -> Console:
    """The console for a command's output: as wide as the terminal, or as a log line."""
    on_terminal = Console()
    return on_terminal if on_terminal.is_terminal else Console(width=_LOG_COLUMNS)


class Progress:
    """Prints what happens, with the seconds since the work began; on a terminal a spinner names the step under way."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._status = console.status("") if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()

    def step(self, title: str) -> None:
        """Announce the next step of the work."""
        self._line(f"[bold]{escape(title)}[/bold]")
        if self._status is not None:
            self._status.update(escape(title))

    def event(self, text: str) -> None:
        """Print one event of the step under way."""
        self._line(f"  {escape(text)}")

    def _line(self, markup: str) -> None:
        elapsed = time.monotonic() - self._began
        self._console.print(f"[dim]{elapsed:7.1f}s[/dim] {markup}", highlight=False, soft_wrap=True)
