#!/bin/sh
# Writes docker/.env: this machine's address and fresh secrets. Once; an existing file is kept.
#   docker/setup.sh [ADDRESS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
file=${ENV_FILE:-$here/.env}
if [ -e "$file" ]; then
  echo "$file is there already; remove it to begin anew" >&2
  exit 1
fi
address=${1:-$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m1 -E '^[0-9]+(\.[0-9]+){3}$' || true)}
sh "$here/check-address.sh" "$address"
secret() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
umask 077
cat > "$file" <<END
# Of this machine only: never commit it.
NODE_IP=$address
LIVEKIT_API_SECRET=$(secret)
VELDT_ADMIN_KEY=$(secret)
END
echo "$file is written for $address. Now: docker compose -f docker/compose.yaml up"
