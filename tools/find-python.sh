#!/usr/bin/env bash
# Makes the virtual environment $1 with the first Python >= 3.11 found (PYTHON names one).
set -euo pipefail
venv=$1
[ -x "$venv/bin/python" ] && exit 0
for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
  if command -v "$python" >/dev/null &&
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    "$python" -m venv "$venv" || {
      echo "python -m venv failed; on Debian and Ubuntu: apt-get install python3-venv" >&2
      exit 1
    }
    exit 0
  fi
done
echo "veldt needs Python 3.11 or newer (PYTHON=/path/to/python names one)" >&2
exit 1
