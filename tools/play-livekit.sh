#!/usr/bin/env bash
# A world through LiveKit on this machine: starts livekit-server on loopback with fresh keys, then
# veldt beside it; both end together. Arguments go to `veldt serve`.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
server=$(bash "$here/tools/livekit-server.sh" --install)
python="$here/.venv/bin/python"
folder=$(mktemp -d)
read -r port tcp udp < <("$python" - <<'PY'
import socket

probes = [socket.socket() for _ in range(3)]
for probe in probes:
    probe.bind(("127.0.0.1", 0))
print(*(probe.getsockname()[1] for probe in probes))
PY
)
secret=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
umask 077
cat > "$folder/livekit.yaml" <<YAML
port: $port
bind_addresses: [127.0.0.1]
rtc:
  tcp_port: $tcp
  udp_port: $udp
  use_external_ip: false
  node_ip: 127.0.0.1
  enable_loopback_candidate: true
  interfaces: {includes: [lo]}
room: {auto_create: false}
keys: {veldt: $secret}
logging: {level: warn}
YAML
set -m # in a process group of its own: Ctrl+C is for veldt, which still needs it then
"$server" --config "$folder/livekit.yaml" &
livekit=$!
set +m
trap 'kill "$livekit" 2>/dev/null || true; wait "$livekit" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$python" - "$port" <<'PY'
import sys
import time
import urllib.request

for _ in range(200):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}", timeout=1)
        break
    except OSError:
        time.sleep(0.05)
else:
    sys.exit("livekit-server did not come up")
PY
trap : INT TERM # both are asked to end; what follows waits for veldt
LIVEKIT_URL="ws://127.0.0.1:$port" LIVEKIT_API_KEY=veldt LIVEKIT_API_SECRET="$secret" \
  "$here/.venv/bin/veldt" serve "$@" &
veldt=$!
trap 'kill -TERM "$veldt" 2>/dev/null || true' INT TERM
code=0
wait "$veldt" || code=$?
wait "$veldt" 2>/dev/null || true
exit "$code"
