#!/bin/sh
# Says whether an address can be LiveKit's: browsers and the worker's container both have to reach it.
set -eu
address=${1:-}
why=
case $address in
  "") why="it is not set" ;;
  *[!0-9.]* | *..* | .* | *. | *.*.*.*.*) why="it is not an IPv4 address" ;;
  *.*.*.*)
    for part in $(echo "$address" | tr . ' '); do
      case $part in
        0?* | ????*) why="it is not an IPv4 address" ;;
        *) [ "$part" -le 255 ] || why="it is not an IPv4 address" ;;
      esac
    done
    ;;
  *) why="it is not an IPv4 address" ;;
esac
case $why$address in
  127.*) why="it means each container itself: a browser here would connect, the worker would not" ;;
  0.*) why="nobody can connect to it" ;;
  169.254.*) why="it was made up because no router gave one" ;;
  22[4-9].* | 2[345]?.*) why="it is no single machine's" ;;
esac
if [ -n "$why" ]; then
  echo "NODE_IP '$address' cannot be used: $why. Set it in docker/.env to this machine's address in your network (hostname -I), or to its public one." >&2
  exit 1
fi
