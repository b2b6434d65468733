import { type Palette, paletteOf } from "./palette";

const SIDE = 24; // pixels; more say the same
const known = new Map<string, Palette>();

/** Give the page the colours of a start picture; it keeps those it has where that cannot be. */
export async function paintFrom(address: string): Promise<void> {
  try {
    const palette = known.get(address) ?? (await look(address));
    known.set(address, palette);
    for (const [name, colour] of Object.entries(palette) as [string, Palette["sand"]][]) {
      document.documentElement.style.setProperty(`--${name}-rgb`, colour.join(" "));
    }
  } catch (error) {
    console.warn("no colours from the picture:", error);
  }
}

async function look(address: string): Promise<Palette> {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIDE;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) throw new Error("no canvas");
  context.drawImage(image, 0, 0, SIDE, SIDE);
  return paletteOf(context.getImageData(0, 0, SIDE, SIDE).data);
}
