"""`python -m server.worker`: a worker on the standard streams of the front door's child."""

from __future__ import annotations

from server.worker.process import main

if __name__ == "__main__":
    main()
