#!/usr/bin/env bash
# Prints the livekit-server of the tests and of `make play-livekit`: $LIVEKIT_SERVER, else one on
# PATH, else the one that was built before. With --install: builds the pinned version where none is
# found (needs Go; about two minutes, into .venv/livekit).
set -euo pipefail
version=v1.13.5
here=$(cd "$(dirname "$0")/.." && pwd)
built="$here/.venv/livekit/livekit-server"
find_server() {
  local name
  for name in ${LIVEKIT_SERVER:-} livekit-server "$built"; do
    if command -v "$name" >/dev/null; then
      command -v "$name"
      return
    fi
  done
  return 1
}
if [ "${1:-}" = --install ] && ! find_server >/dev/null && command -v go >/dev/null; then
  mkdir -p "$(dirname "$built")"
  folder=$(mktemp -d "$(dirname "$built")/build.XXXXXX")
  trap 'rm -rf "$folder"' EXIT
  echo "building livekit-server $version" >&2
  GOBIN="$folder" GOFLAGS=-modcacherw go install "github.com/livekit/livekit-server/cmd/server@$version" >&2
  mv "$folder/server" "$built"
fi
if ! find_server; then
  echo "livekit-server is missing. Any one of these will do:" >&2
  echo "  LIVEKIT_SERVER=/path/to/livekit-server, or livekit-server on PATH" >&2
  echo "    (https://github.com/livekit/livekit/releases/tag/$version)" >&2
  echo "  Go 1.26 or newer, or one that fetches it (https://go.dev/dl), then: bash tools/livekit-server.sh --install" >&2
  echo "  Docker, with the whole service in it: docker compose -f docker/compose.yaml up" >&2
  exit 1
fi
