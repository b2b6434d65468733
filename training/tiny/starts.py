"""Draw the start pictures: `python -m training.tiny.starts` writes pipeline/tiny/starts/*.png."""

from __future__ import annotations

import numpy as np
from PIL import Image

from pipeline.tiny.starts import FOLDER, STARTS
from training.tiny.judge import true_pictures


def main() -> None:
    """Draw every start."""
    FOLDER.mkdir(exist_ok=True)
    for name, (_, player) in STARTS.items():
        (picture,) = true_pictures(np.array([player.pose()]))
        Image.fromarray(picture).save(FOLDER / f"{name}.png", optimize=True)
        print(f"{name}: {player}")


if __name__ == "__main__":
    main()
