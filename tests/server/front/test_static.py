from __future__ import annotations

import pytest

from server.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def built(tmp_path):
    (tmp_path / "secret.txt").write_text("root:x:0:0")
    page = tmp_path / "dist"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>veldt</title>")
    (page / "assets" / "main-1a2b.js").write_text("export {};")
    (page / "favicon.svg").write_text("<svg/>")
    (page / ".env").write_text("SECRET=1")
    (page / "link.txt").symlink_to(tmp_path / "secret.txt")
    return page


async def test_the_page_is_served_with_its_caching(open_door, built) -> None:
    async with open_door(Settings(client_dir=built)) as door:
        page = await door.client.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["cache-control"] == "no-cache"
        script = await door.client.get("/assets/main-1a2b.js")
        assert "javascript" in script.headers["content-type"]
        assert "immutable" in script.headers["cache-control"]
        assert (await door.client.get("/favicon.svg")).headers["cache-control"] == "no-cache"
        again = await door.client.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert again.status_code == 304
        head = await door.client.head("/")
        assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/../../secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/..\\secret.txt",
        "/%5c%5chost%5cshare",
        "//etc/passwd",
        "/file:///etc/passwd",
        "/index.html%00.js",
        "/.env",
        "/assets/.hidden",
        "/link.txt",
        "/" + "a" * 5000,
        "/%ff%fe",
        "/assets",
        "/assets/",
        "/missing.js",
    ],
)
async def test_nothing_outside_the_build_is_served(open_door, built, path) -> None:
    async with open_door(Settings(client_dir=built)) as door:
        answer = await door.client.get(path, follow_redirects=False)
        assert answer.status_code in (307, 404)
        assert "root:" not in answer.text
        assert "SECRET" not in answer.text
        if answer.status_code == 307:  # a folder with its slash: and then it is not there either
            assert (await door.client.get(path + "/")).status_code == 404
        else:
            assert answer.json()["code"] == "not_found"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_the_page_can_only_be_read(open_door, built, method) -> None:
    async with open_door(Settings(client_dir=built)) as door:
        answer = await door.client.request(method, "/index.html")
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
async def test_a_page_that_is_not_built_says_how_to_build_it(open_door, tmp_path, missing) -> None:
    (tmp_path / "empty").mkdir()
    async with open_door(Settings(client_dir=tmp_path / missing)) as door:
        answer = await door.client.get("/")
        assert answer.status_code == 503
        assert "make setup" in answer.text
        assert str(tmp_path) not in answer.text
        assert (await door.client.get("/healthz")).status_code == 200
