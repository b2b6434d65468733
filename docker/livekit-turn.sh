#!/bin/sh
# Starts LiveKit with its TURN server: livekit.yaml and what is added here (compose.turn.yaml).
# The relay sends to this LiveKit's own address and to no other: neither into a private network nor,
# for whoever has joined a room once, out to the world. LiveKit knows no such setting, so the address
# is allowed (it may be a private one) and the 32 ranges that make up all others are denied.
set -eu
: "${NODE_IP:?is not set}"
config=${LIVEKIT_YAML:-/etc/livekit.yaml}
quads=$(echo "$NODE_IP" | tr . ' ')
# shellcheck disable=SC2086 # four words
set -- $quads -- "$@"
address=$(($1 << 24 | $2 << 16 | $3 << 8 | $4))
shift 5
denied=
bit=1
while [ "$bit" -le 32 ]; do # as NODE_IP up to this bit, which differs
  low=$((32 - bit))
  other=$(((address >> low ^ 1) << low))
  denied="$denied, $((other >> 24)).$((other >> 16 & 255)).$((other >> 8 & 255)).$((other & 255))/$bit"
  bit=$((bit + 1))
done
LIVEKIT_CONFIG="$(cat "$config")
turn:
  enabled: true
  udp_port: 3478
  allow_restricted_peer_cidrs: [$NODE_IP/32]
  deny_peer_cidrs: [${denied#, }]"
export LIVEKIT_CONFIG
exec "${LIVEKIT_SERVER:-/livekit-server}" "$@" --node-ip "$NODE_IP"
