"""What can go wrong with LingBot's inputs: typed errors, a sentence first."""

from __future__ import annotations

from pathlib import Path

from pipeline.service import BadStart


class LingBotError(ValueError):
    """Base of everything that the model refuses."""

    code = "lingbot"


class BadWindow(LingBotError):
    """An attention window that cannot hold its sink and one chunk, or that is full."""

    code = "bad_window"


class BadControl(LingBotError):
    """Keys, poses or intrinsics that no camera can follow."""

    code = "bad_control"


class BadWeights(LingBotError):
    """A weight file that cannot be read, or does not hold what its name promises."""

    code = "bad_weights"

    def __init__(self, path: Path, message: str) -> None:
        """Name the file and say in one sentence what is wrong with it."""
        super().__init__(f"{path}: {message}")
        self.path = path


class CheckpointMismatch(BadWeights):
    """Keys or shapes are not those of the model; lists what is missing, unexpected, misshaped."""

    code = "checkpoint_mismatch"

    def __init__(
        self,
        path: Path,
        summary: str,
        missing: tuple[str, ...] = (),
        unexpected: tuple[str, ...] = (),
        misshaped: tuple[str, ...] = (),
    ) -> None:
        """Start with `summary`, then give the first few names of each list."""
        lists = {"missing": missing, "unexpected": unexpected, "misshaped": misshaped}
        lines = [
            f"  {kind} ({len(names)}): {_some(names)}" for kind, names in lists.items() if names
        ]
        super().__init__(path, "\n".join([summary, *lines]))
        self.missing, self.unexpected, self.misshaped = missing, unexpected, misshaped


class FetchFailed(LingBotError):
    """A download that did not happen, with the reason and what to change."""

    code = "fetch_failed"


class BadImage(BadStart):
    """A start image that cannot be shown to the model."""

    def __init__(self, message: str) -> None:
        """Say in one sentence what is wrong with the image."""
        super().__init__("image", message)


class BadPrompt(BadStart):
    """A prompt that cannot be encoded."""

    def __init__(self, message: str) -> None:
        """Say in one sentence what is wrong with the prompt."""
        super().__init__("prompt", message)


def _some(names: tuple[str, ...], most: int = 6) -> str:
    rest = f", … and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
