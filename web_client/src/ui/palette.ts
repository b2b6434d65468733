/** The colours of the page, taken from the picture of the place one goes to. Pure. */

export type Rgb = readonly [red: number, green: number, blue: number]; // 0…255

export interface Palette {
  readonly sand: Rgb; // text
  readonly soft: Rgb; // text that matters less
  readonly glass: Rgb; // what lies over the picture
  readonly earth: Rgb; // darkest: behind everything
  readonly accent: Rgb; // the one colour
  readonly deep: Rgb; // text on the accent
}

export const ENOUGH = 4.5; // contrast of text (WCAG 2.2, 1.4.3)
const BINS = 24; // of hue

/** @param pixels RGBA, as a canvas gives them. */
export function paletteOf(pixels: ArrayLike<number>): Palette {
  const weights = new Array<number>(BINS).fill(0);
  const dark = { x: 0, y: 0 };
  for (let at = 0; at + 3 < pixels.length; at += 4) {
    const [hue, saturation, lightness] = toHsl([pixels[at] ?? 0, pixels[at + 1] ?? 0, pixels[at + 2] ?? 0]);
    // What glows counts most: strong colour, neither black nor white.
    const glow = saturation ** 1.5 * Math.max(0, 1 - Math.abs(lightness - 0.6) * 2.2);
    const bin = Math.floor(hue * BINS) % BINS;
    weights[bin] = (weights[bin] ?? 0) + glow * warmth(hue);
    const shade = saturation * Math.max(0, 0.6 - lightness) + 0.02;
    dark.x += Math.cos(hue * 2 * Math.PI) * shade;
    dark.y += Math.sin(hue * 2 * Math.PI) * shade;
  }
  const glow = (weights.indexOf(Math.max(...weights)) + 0.5) / BINS;
  // The glass leans towards the accent, so that the two are of one family.
  const length = Math.hypot(dark.x, dark.y) || 1;
  const lean = (part: number, to: number): number => part / length + 1.5 * to;
  const hue =
    Math.atan2(
      lean(dark.y, Math.sin(glow * 2 * Math.PI)),
      lean(dark.x, Math.cos(glow * 2 * Math.PI)),
    ) /
    (2 * Math.PI);
  return readable(hue < 0 ? hue + 1 : hue, glow);
}

/** An accent calls: of two colours as strong, the warmer one does so more. */
function warmth(hue: number): number {
  return 1 + 1.5 * Math.max(0, Math.cos((hue - 0.07) * 2 * Math.PI));
}

/** The palette of a dark hue and a glowing one, in lightnesses that can be read. */
function readable(hue: number, glow: number): Palette {
  const glass = toRgb([hue, 0.46, 0.1]);
  const deep = toRgb([glow, 0.8, 0.09]);
  let lightness = 0.62;
  const bright = (): Rgb => toRgb([glow, 0.96, lightness]);
  while (
    lightness < 0.92 &&
    (contrast(bright(), lighter(glass)) < ENOUGH || contrast(bright(), deep) < ENOUGH + 1)
  ) {
    lightness += 0.01;
  }
  return {
    sand: toRgb([hue, 0.6, 0.91]),
    soft: toRgb([hue, 0.42, 0.8]),
    glass,
    earth: toRgb([hue, 0.46, 0.06]),
    accent: bright(),
    deep,
  };
}

/** Glass over a bright picture lets some of it through. */
function lighter([red, green, blue]: Rgb): Rgb {
  const through = (part: number): number => part * 0.84 + 255 * 0.16;
  return [through(red), through(green), through(blue)];
}

/** Contrast of two colours, 1…21 (WCAG 2.2). */
export function contrast(one: Rgb, other: Rgb): number {
  const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return ((more ?? 0) + 0.05) / ((less ?? 0) + 0.05);
}

function luminance([red, green, blue]: Rgb): number {
  const linear = (part: number): number => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

type Hsl = readonly [hue: number, saturation: number, lightness: number]; // each 0…1

function toHsl([red, green, blue]: Rgb): Hsl {
  const [r, g, b] = [red / 255, green / 255, blue / 255];
  const most = Math.max(r, g, b);
  const range = most - Math.min(r, g, b);
  const lightness = most - range / 2;
  if (range === 0) return [0, 0, lightness];
  const saturation = range / (1 - Math.abs(2 * lightness - 1));
  const sixth = most === r ? (g - b) / range : most === g ? 2 + (b - r) / range : 4 + (r - g) / range;
  return [((sixth + 6) % 6) / 6, saturation, lightness];
}

function toRgb([hue, saturation, lightness]: Hsl): Rgb {
  const part = (shift: number): number => {
    const place = (shift + hue * 12) % 12;
    const reach = saturation * Math.min(lightness, 1 - lightness);
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  };
  return [part(0), part(8), part(4)];
}
