// The hues of the graph, as people with each kind of colour blindness see them: each two must stay apart, and all from the background.
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { check, modules } from "./session.mjs";

/** Least distance of two hues in OKLab, in hundredths: two areas side by side that differ by 2 can just be told apart. */
const APART = 9;
/** Least contrast of what is no text (WCAG 2, 1.4.11). */
const CONTRAST = 2.9;
const BACKGROUND = { LIGHT: "#fcfcfb", DARK: "#131417" };

/** What becomes of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1). */
const SIGHT = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

const linear = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
const seen = (matrix, colour) => matrix.map((row) => Math.min(1, Math.max(0, row.reduce((sum, part, at) => sum + part * colour[at], 0))));
function oklab([r, g, b]) {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}
const distance = (a, b) => 100 * Math.hypot(...a.map((value, at) => value - b[at]));
const luminance = (hex) => linear(hex).reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
function contrast(a, b) {
  const [light, dark] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (light + 0.05) / (dark + 0.05);
}

export async function colours() {
  const { build } = createRequire(`${modules}/`)("esbuild");
  const source = join(fileURLToPath(import.meta.url), "../../../web/src/graph/palette.ts");
  const { outputFiles } = await build({ entryPoints: [source], bundle: true, format: "esm", write: false });
  const palettes = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
  for (const [theme, hues] of Object.entries(palettes)) {
    for (const [sight, matrix] of Object.entries(SIGHT)) {
      const looks = hues.map((hue) => oklab(seen(matrix, linear(hue))));
      const near = hues.flatMap((hue, a) => hues.slice(a + 1).map((other, n) => [hue, other, distance(looks[a], looks[a + 1 + n])])).filter(([, , far]) => far < APART);
      check(`the ${hues.length} hues of ${theme} stay apart for ${sight} sight`, hues.length === 8 && !near.length, near);
    }
    const pale = hues.filter((hue) => contrast(hue, BACKGROUND[theme]) < CONTRAST);
    check(`the hues of ${theme} stand out from the background`, !pale.length, pale);
  }
}
