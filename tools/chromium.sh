#!/usr/bin/env bash
# Prints the Chromium that the browser tests drive: $CHROMIUM, else one on PATH.
# With --install: as root on Debian or Ubuntu, installs it first where it is missing.
set -euo pipefail
find_chromium() {
  local name
  for name in ${CHROMIUM:-} chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
      command -v "$name"
      return
    fi
  done
  return 1
}
if [ "${1:-}" = --install ] && ! find_chromium >/dev/null && [ "$(id -u)" = 0 ] &&
  command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >/dev/null
fi
if ! find_chromium; then
  echo "the browser tests need Chromium: 'apt-get install chromium', or CHROMIUM=/path/to/it" >&2
  exit 1
fi
