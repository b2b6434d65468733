#!/usr/bin/env bash
# Parts of Docker that need no engine, for the tests of docker/: prints the folder that holds
#   compose   what `docker compose config` does, by the library that does it there
#   proxy     docker-proxy, which carries published ports
# Built with Go into .venv/docker where they are missing; some seconds.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
folder="$here/.venv/docker"
if [ ! -x "$folder/compose" ] || [ ! -x "$folder/proxy" ]; then
  command -v go >/dev/null || {
    echo "the tests of docker/ build parts of Docker with Go: https://go.dev/dl" >&2
    exit 1
  }
  mkdir -p "$folder"
  built=$(mktemp -d "$folder/build.XXXXXX")
  trap 'rm -rf "$built"' EXIT
  export GOFLAGS=-modcacherw
  go build -C "$here/tools/compose-config" -o "$built/compose" . >&2
  GOBIN="$built" go install github.com/moby/moby/v2/cmd/docker-proxy@v2.0.0-beta.24 >&2
  mv "$built/compose" "$folder/compose"
  mv "$built/docker-proxy" "$folder/proxy"
fi
echo "$folder"
