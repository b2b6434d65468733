import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from pipeline.lingbot import fetch
from pipeline.lingbot.errors import BadWeights, FetchFailed
from pipeline.lingbot.fetch import PUBLISHED, fetch_weights
from tests.pipeline.lingbot.test_weights import published

BASE, FAST = (source.repository for source in PUBLISHED)


class Hub(ThreadingHTTPServer):
    """A hub on loopback that serves two directories, and can be made to misbehave."""

    daemon_threads = True

    def __init__(self, repositories: dict[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.repositories = repositories
        self.requests: list[tuple[str, str | None]] = []
        self.cut_after: int | None = None  # bytes of a body, then the connection breaks
        self.ignore_range = False
        self.status: int | None = None
        self.wrong_hash = False
        self.claimed_size: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def info(self, repository: str) -> dict[str, object]:
        siblings = []
        root = self.repositories[repository]
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            data = path.read_bytes()
            sha = "0" * 64 if self.wrong_hash else hashlib.sha256(data).hexdigest()
            size = self.claimed_size or len(data)
            siblings.append(
                {
                    "rfilename": path.relative_to(root).as_posix(),
                    "size": size,
                    "blobId": "b",
                    "lfs": {"sha256": sha, "size": size, "pointerSize": 1},
                }
            )
        return {"id": repository, "sha": "a" * 40, "siblings": siblings, "private": False}


class HubHandler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        if path.startswith("api/models/"):
            self._answer(
                200, json.dumps(self.server.info(path.removeprefix("api/models/"))).encode()
            )
            return
        repository, _, name = path.partition(f"/resolve/{'a' * 40}/")
        wanted = self.headers.get("Range")
        self.server.requests.append((name, wanted))
        if self.server.status:
            self._answer(self.server.status, b"no")
            return
        data = (self.server.repositories[repository] / name).read_bytes()
        status = 200
        if wanted and not self.server.ignore_range:
            data, status = data[int(wanted.removeprefix("bytes=").rstrip("-")) :], 206
        cut, self.server.cut_after = self.server.cut_after, None
        self._answer(status, data, cut)

    def _answer(self, status: int, body: bytes, cut: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        if cut is not None:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    source = tmp_path / "hub"
    published(source)
    fast = tmp_path / "fast"
    (source / "lingbot_world_fast").rename(fast)
    (source / "README.md").write_text("not wanted")
    server = Hub({BASE: source, FAST: fast})
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def fetched(hub: Hub, to: Path, seen: list[tuple[str, float]] | None = None) -> fetch.Checkpoint:
    def progress(what: str, share: float) -> None:
        if seen is not None:
            seen.append((what, share))

    return fetch_weights(to, accept=lambda _: True, progress=progress, endpoint=hub.url)


def test_everything_arrives_in_the_published_layout_with_progress(hub: Hub, tmp_path: Path) -> None:
    seen: list[tuple[str, float]] = []
    found = fetched(hub, tmp_path / "to", seen)
    assert found.dit == tmp_path / "to" / "lingbot_world_fast"
    for file in hub.repositories[FAST].iterdir():
        assert (found.dit / file.name).read_bytes() == file.read_bytes()
    assert not list((tmp_path / "to").rglob("*.part"))
    assert not (tmp_path / "to" / "README.md").exists()
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert "downloading Wan2.1_VAE.pth" in {what for what, _ in seen}


def test_the_licence_is_shown_first_and_nothing_moves_without_it(hub: Hub, tmp_path: Path) -> None:
    shown: list[str] = []

    def refuse(text: str) -> bool:
        shown.append(text)
        assert hub.requests == []
        return False

    with pytest.raises(FetchFailed, match="not accepted"):
        fetch_weights(tmp_path / "to", accept=refuse, endpoint=hub.url)
    assert hub.requests == []
    assert not (tmp_path / "to").exists()
    assert "CC BY-NC-SA" in shown[0]
    assert "Apache" in shown[0]


def test_a_second_run_downloads_nothing(hub: Hub, tmp_path: Path) -> None:
    fetched(hub, tmp_path / "to")
    hub.requests.clear()
    fetched(hub, tmp_path / "to")
    assert hub.requests == []


def test_a_broken_connection_is_carried_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.cut_after = 1000
    fetched(hub, tmp_path / "to")
    assert hub.requests[1] == (hub.requests[0][0], "bytes=1000-")


def test_another_process_carries_on_with_a_part(hub: Hub, tmp_path: Path) -> None:
    vae = hub.repositories[BASE] / "Wan2.1_VAE.pth"
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "Wan2.1_VAE.pth.part").write_bytes(vae.read_bytes()[:5000])
    fetched(hub, tmp_path / "to")
    assert ("Wan2.1_VAE.pth", "bytes=5000-") in hub.requests
    assert (tmp_path / "to" / "Wan2.1_VAE.pth").read_bytes() == vae.read_bytes()


def test_a_hub_that_ignores_ranges_starts_the_file_anew(hub: Hub, tmp_path: Path) -> None:
    hub.cut_after, hub.ignore_range = 1000, True
    fetched(hub, tmp_path / "to")


def test_a_file_that_is_not_what_was_published_is_removed(hub: Hub, tmp_path: Path) -> None:
    hub.wrong_hash = True
    with pytest.raises(FetchFailed, match="not what the hub published"):
        fetched(hub, tmp_path / "to")
    assert not [p for p in (tmp_path / "to").rglob("*") if p.is_file()]


def test_a_gated_model_is_said_in_one_sentence(hub: Hub, tmp_path: Path) -> None:
    hub.status = 403
    with pytest.raises(FetchFailed, match=r"403 Forbidden.*HF_TOKEN"):
        fetched(hub, tmp_path / "to")


def test_no_network_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="The download failed"):
        fetch_weights(tmp_path / "to", accept=lambda _: True, endpoint="http://127.0.0.1:9")


def test_a_place_that_cannot_be_written_is_named(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FetchFailed, match=r"file.* cannot be used .*--to"):
        fetched(hub, tmp_path / "file" / "to")


def test_too_little_space_is_known_before_a_byte_is_loaded(hub: Hub, tmp_path: Path) -> None:
    hub.claimed_size = 10**15
    with pytest.raises(FetchFailed, match=r"GB free and .* GB are needed"):
        fetched(hub, tmp_path / "to")
    assert hub.requests == []


def test_a_listing_that_leaves_its_folder_is_refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = hub.info(BASE)
    wrong["siblings"] = [{"rfilename": "google/umt5-xxl/../../../evil", "size": 3}]
    monkeypatch.setattr(hub, "info", lambda _: wrong)
    with pytest.raises(FetchFailed, match="cannot be stored"):
        fetched(hub, tmp_path / "to")


def test_a_repository_without_the_files_is_named(hub: Hub, tmp_path: Path) -> None:
    (hub.repositories[BASE] / "Wan2.1_VAE.pth").unlink()
    with pytest.raises(BadWeights, match=r"Wan2.1_VAE.pth"):
        fetched(hub, tmp_path / "to")


def test_the_command_shows_the_licence_and_asks_for_its_acceptance(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipeline.lingbot.fetch", "--to", str(tmp_path / "to")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert "--accept-licence" in done.stderr
    assert "CC BY-NC-SA" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "to").exists()


def test_a_place_for_tokens_that_cannot_be_read_is_named_with_its_variable(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row K3: not the directory of the weights, but the hub library's own."""
    (tmp_path / "owned").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "owned"))
    with pytest.raises(FetchFailed, match=r"owned cannot be used .*HF_HOME"):
        fetched(hub, tmp_path / "to")
