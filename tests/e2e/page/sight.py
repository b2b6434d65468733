"""What can be seen on the page: where things are, whether they can be read, what axe finds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import CDPSession, Page

from tests.e2e.page.pictures import photograph, settle

AXE = Path("web_client/node_modules/axe-core/axe.min.js")
SIZES = {
    "phone": (320, 568),
    "phone on its side": (844, 390),
    "desktop": (1280, 800),
    "ultrawide": (2560, 1080),
    "zoomed to 125 %": (1024, 640),  # what 1280 × 800 is then, in CSS pixels
}

# Boxes of what lies over the picture, and of what stands inside of them; clipped text counts too.
LAYOUT = """() => {
    const visible = one => one.checkVisibility({visibilityProperty: true});
    const box = element => {
        const {left, top, right, bottom} = element.getBoundingClientRect();
        const name = element.dataset.testid || element.id || element.className || element.tagName;
        return {name: String(name), left, top, right, bottom};
    };
    const all = selector => [...document.querySelectorAll(selector)].filter(visible);
    const modal = document.querySelector("dialog[open]");
    const layers = modal ? [modal] : all(
        ".where, .tools, .cluster, .panel, .hud, .greeting, .cards, .begin > .button, .hint-pill, "
        + ".toast.there");
    const within = modal ? [modal] : all(".panel, .hud, .cards, .keys, .arriving");
    const inside = ".card, .button, h1, h2, p, .cap, .row, summary, .setting, kbd, dd";
    const leaves = within.map(parent => ({
        parent: box(parent),
        children: [...parent.querySelectorAll(inside)].filter(visible).map(box),
    }));
    const wide = one => one.scrollWidth > one.clientWidth + 1;
    const scrolls = [document.documentElement, document.body, ...all(".arriving, .sheet, .cards")]
        .filter(one => wide(one) || one.scrollHeight > one.clientHeight + 1)
        .map(one => `${one.className || one.tagName}: ${one.scrollWidth} x ${one.scrollHeight}`
            + ` in ${one.clientWidth} x ${one.clientHeight}`);
    const cut = all(".button, .where, .pill, .name, h1, h2, .sentence, .more")
        .filter(one => wide(one) && one.clientWidth > 0)
        .map(one => one.textContent);
    return {layers: layers.map(box), leaves, scrolls, cut,
            width: innerWidth, height: innerHeight};
}"""
_SLACK = 1.5  # CSS pixels


def resize(page: Page, width: int, height: int) -> None:
    """Give the window another size, and wait until the page has been laid out for it."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(
        "([width, height]) => innerWidth === width && innerHeight === height", arg=[width, height]
    )
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def misplaced(page: Page) -> list[str]:
    """What overlaps, sticks out, scrolls or is cut off."""
    layout = page.evaluate(LAYOUT)
    window = {"left": 0, "top": 0, "right": layout["width"], "bottom": layout["height"]}
    faults = [f"scrolls: {one}" for one in layout["scrolls"]]
    faults += [f"cut off: {one}" for one in layout["cut"]]
    layers = layout["layers"]
    for number, one in enumerate(layers):
        if not _inside(one, window):
            faults.append(f"{one['name']} sticks out of the window: {one}")
        faults += [
            f"{one['name']} lies over {other['name']}: {one} {other}"
            for other in layers[number + 1 :]
            if _overlap(one, other)
        ]
    for group in layout["leaves"]:
        faults += [
            f"{child['name']} sticks out of the window: {child}"
            for child in group["children"]
            if not _inside(child, window)
            and _inside(group["parent"], window)
            and not _scrolled(group["parent"]["name"])
        ]
    return faults


def _scrolled(name: str) -> bool:
    return name in ("hud", "help")  # these may be longer than the window, and scroll inside


def _inside(one: dict[str, float], other: dict[str, float]) -> bool:
    return (
        one["left"] >= other["left"] - _SLACK
        and one["top"] >= other["top"] - _SLACK
        and one["right"] <= other["right"] + _SLACK
        and one["bottom"] <= other["bottom"] + _SLACK
    )


def _overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    return (
        min(one["right"], other["right"]) - max(one["left"], other["left"]) > _SLACK
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > _SLACK
    )


@cache
def _axe() -> str:
    return AXE.read_text()


def axe_faults(page: Page) -> list[str]:
    """What axe-core has against the page as it is now, and a moment later too.

    What fades in or out just then has less contrast, and is no fault.
    """
    page.evaluate(_axe())
    faults: list[str] = []
    for _ in range(2):
        settle(page)
        found: list[dict[str, Any]] = page.evaluate(
            "async () => (await axe.run(document)).violations"
        )
        faults = [
            f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes']]}"
            for one in found
        ]
        if not faults:
            break
    return faults


# Text elements with their colours; then the same places with the letters made invisible.
TEXTS = """() => {
    const found = [];
    window.textsFound = [];
    const cut = (box, element) => {
        for (let one = element.parentElement; one !== document.body && one; one = one.parentElement)
            if (getComputedStyle(one).overflowY !== "visible") {
                const {top, bottom} = one.getBoundingClientRect();
                if (box.top < top - 1 || box.bottom > bottom + 1) return true;
            }
        return false;
    };
    window.opacityOf = element => {
        let opacity = 1;
        for (let one = element; one; one = one.parentElement)
            opacity *= getComputedStyle(one).opacity;
        return opacity;
    };
    const seen = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const modal = document.querySelector("dialog[open]");
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        const text = node.textContent.trim();
        if (!text || seen.has(element) || element.closest(".unseen, noscript")) continue;
        if (modal && !modal.contains(element)) continue;
        if (element.closest("button")?.disabled) continue; // exempt, and says so by its look
        if (!element.checkVisibility({visibilityProperty: true})) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const {left, top, right, bottom, width, height} = range.getBoundingClientRect();
        if (width < 2 || height < 2) continue;
        if (left < 0 || top < 0 || right > innerWidth || bottom > innerHeight) continue;
        seen.add(element);
        if (cut({left, top, right, bottom}, element)) continue; // scrolled out of sight
        if (window.opacityOf(element) < 0.9) continue; // fading away, or out of use
        window.textsFound.push(element);
        found.push({text: text.slice(0, 80), window: innerWidth, left, top, width, height,
                    colour: getComputedStyle(element).color});
    }
    const letters = [...document.querySelectorAll("*")];
    window.hiddenLetters = letters.map(one => [one, one.getAttribute("style")]);
    for (const one of letters) {
        one.style.setProperty("color", "transparent", "important");
        one.style.setProperty("text-shadow", "none", "important");
        one.style.setProperty("transition-property", "opacity", "important");
    }
    return found;
}"""
# Says of each text whether it is still all there.
LETTERS_BACK = """() => {
    const there = window.textsFound.map(one =>
        one.checkVisibility({visibilityProperty: true}) && window.opacityOf(one) >= 0.9);
    for (const [one, style] of window.hiddenLetters)
        if (style === null) one.removeAttribute("style"); else one.style.cssText = style;
    return there;
}"""


def unreadable(
    page: Page,
    shot: Image.Image | None = None,
    words: str = "",
    hand: CDPSession | None = None,
    least: float = 4.5,
) -> list[str]:
    """Texts that cannot be read on the screen.

    Their contrast with what really lies behind them is too low; or, in a picture `shot` of the page
    as it is, they are not to be seen; or no text has the `words`.
    """
    settle(page)
    texts = page.evaluate(TEXTS)
    without = photograph(page, hand)
    there = page.evaluate(LETTERS_BACK)
    texts = [text for text, still in zip(texts, there, strict=True) if still]
    bare = np.asarray(without)
    faults = [] if any(words in text["text"] for text in texts) else [f"nowhere: {words!r}"]
    for text in texts:
        behind = _part(bare, text, without.width / text["window"])
        colour = np.array([float(v) for v in _numbers(text["colour"])[:3]])
        ratio = np.percentile(_contrast(colour, behind.reshape(-1, 3)), 10)  # the worst tenth
        if ratio < least:
            faults.append(f"contrast: {text['text']!r}: {ratio:.2f}")
        if shot is None:
            continue
        drawn = _part(np.asarray(shot), text, shot.width / text["window"])
        far, near = (np.abs(part - colour).mean(2).ravel() for part in (behind, drawn))
        if np.percentile(near, 2) > 0.5 * np.percentile(far, 50):
            faults.append(f"not painted: {text['text']!r}")
    return faults


def _part(shot: NDArray[np.uint8], text: dict[str, Any], scale: float) -> NDArray[np.uint8]:
    """Where a text stands in a picture."""
    left, top = int(scale * text["left"]), int(scale * text["top"])
    width, height = int(scale * text["width"]) + 1, int(scale * text["height"]) + 1
    return shot[top : top + height, left : left + width]


def _numbers(colour: str) -> list[str]:
    """The parts of `rgb(…)`; of `color(srgb …)`, which counts to 1, in 255ths."""
    inside = colour[colour.index("(") + 1 : -1].replace(",", " ").replace("/", " ").split()
    if inside[0] == "srgb":
        return [str(255 * float(part)) for part in inside[1:4]]
    return inside


def _contrast(text: NDArray[np.float64], behind: NDArray[np.uint8]) -> NDArray[np.float64]:
    """WCAG 2.2 contrast of a colour with each of many."""
    one, others = _luminance(text), _luminance(behind.astype(float))
    more, less = np.maximum(one, others), np.minimum(one, others)
    return np.asarray((more + 0.05) / (less + 0.05))


def _luminance(colour: NDArray[np.float64]) -> NDArray[np.float64]:
    share = colour / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))
