#!/usr/bin/env bash
# pytest.sh PYTHON [ARGS]: all Python tests. With PROCESSES=2 (or more), so many at a time, and then,
# one by one, those that compare times with times and want the machine for themselves.
set -uo pipefail
python=$1; shift
if [ "${PROCESSES:-1}" -le 1 ]; then exec "$python" -m pytest -q "$@"; fi
NOTHING_SELECTED=5
status=$NOTHING_SELECTED
run() {
  "$python" -m pytest -q "$@"
  local ended=$?
  [ "$ended" -eq "$NOTHING_SELECTED" ] && return
  if [ "$status" -eq "$NOTHING_SELECTED" ] || [ "$ended" -ne 0 ]; then status=$ended; fi
}
# Groups in the order of collection: no process has an async test after its first browser test.
# One thread of torch each: else there are more of them than cores.
OMP_NUM_THREADS=1 run -m "not alone" -n "$PROCESSES" --dist loadgroup --no-loadscope-reorder "$@"
run -m alone "$@"
exit "$status"
