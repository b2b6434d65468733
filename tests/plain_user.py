"""A normal user on a machine where nothing can be written, as a locked-down container is."""

from __future__ import annotations

import sys
from pathlib import Path

NOBODY = 65534
ROOT = Path(__file__).parents[1]

# All of it happens in namespaces that end with the process. $1: the trees that Python needs, one
# a line; those in a folder that the user may not enter are shown again in an empty one of its name.
_SCRIPT = f"""
set -eu
trees=$1; shift
mount --make-rprivate /
ip link set lo up
mount -t tmpfs -o mode=755 tmpfs /srv
count=0
for tree in $trees; do
  count=$((count + 1)); mkdir "/srv/$count"; mount --rbind "$tree" "/srv/$count"
done
shut=
for tree in $trees; do
  closed=; folder=$tree
  while [ "$folder" != / ]; do
    folder=$(dirname "$folder")
    mode=$(stat -c %A "$folder")
    case $mode in *[xt]) ;; *) closed=$folder ;; esac
  done
  case "$shut " in *" $closed "*) ;; *) shut="$shut $closed" ;; esac
done
for closed in $shut; do mount -t tmpfs -o mode=755 tmpfs "$closed"; done
mount -t tmpfs -o size=1M,mode=1777 tmpfs /tmp
count=0
for tree in $trees; do
  count=$((count + 1)); mkdir -p "$tree"; mount --rbind "/srv/$count" "$tree"
done
mkdir /srv/home; mkdir -m 700 /srv/owned
dd if=/dev/zero of=/tmp/full bs=4k 2>/dev/null || true
for place in $(findmnt -rno TARGET); do
  case $place in
    /proc*|/sys*|/dev*|/tmp) ;;
    *) ! mountpoint -q "$place" || mount -o remount,bind,ro "$place" ;;  # else hidden by now
  esac
done
cd /srv/home
exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"
"""

HOME = "/srv/home"  # read-only, as is everything but /tmp, which is a full disk of 1 MB
FULL = "/tmp"
FOREIGN = "/srv/owned"  # of another user: it may not even be looked into
ENVIRONMENT = {"HOME": HOME, "XDG_CACHE_HOME": f"{HOME}/.cache", "HF_HOME": FOREIGN}


def as_nobody(*arguments: str, own_network: bool = False) -> list[str]:
    """The command line of that user's `veldt`; `own_network`: one with a loopback alone."""
    needed = {Path(tree).resolve() for tree in (sys.base_prefix, sys.prefix, ROOT)}
    trees = [str(tree) for tree in needed if needed.isdisjoint(tree.parents)]
    spaces = ["--mount", *(["--net"] if own_network else [])]
    veldt = [sys.executable, "-m", "server.cli", *arguments]
    return ["unshare", *spaces, "sh", "-c", _SCRIPT, "sh", "\n".join(trees), *veldt]
