// Tests that language colours are distinguishable in both themes, even with the two most frequent colour vision
// deficiencies.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LANGUAGES, languageClass } from "../../src/parts/language";

type Triple = [number, number, number];
type Matrix = [Triple, Triple, Triple];

const TOKENS = readFileSync(join(import.meta.dirname, "../../src/styles/tokens.css"), "utf-8");
// Matrices for linear RGB that simulate colour vision deficiencies: Machado, Oliveira and Fernandes (2009), severity 1.
const VISIONS: Record<string, Matrix> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
};
// Conversion from linear RGB to OKLab (Ottosson, 2020), in which distances are proportional to perceived differences.
const TO_CONES: Matrix = [
  [0.4122214708, 0.5363325363, 0.0514459929],
  [0.2119034982, 0.6806995451, 0.1073969566],
  [0.0883024619, 0.2817188376, 0.6299787005],
];
const TO_LAB: Matrix = [
  [0.2104542553, 0.793617785, -0.0040720468],
  [1.9779984951, -2.428592205, 0.4505937099],
  [0.0259040371, 0.7827717662, -0.808675766],
];

const times = (matrix: Matrix, [x, y, z]: Triple): Triple => {
  const [a, b, c] = matrix.map((row) => row[0] * x + row[1] * y + row[2] * z);
  return [a ?? 0, b ?? 0, c ?? 0];
};

function color(token: string, theme: "light" | "dark"): Triple {
  const both = new RegExp(`--${token}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(TOKENS);
  const hex = both?.[theme === "light" ? 1 : 2] ?? "";
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return [r, g, b];
}

function seen(rgb: Triple, vision: Matrix): Triple {
  const [r, g, b] = times(vision, rgb).map((part) => Math.min(1, Math.max(0, part)));
  const [l, m, s] = times(TO_CONES, [r ?? 0, g ?? 0, b ?? 0]).map(Math.cbrt);
  return times(TO_LAB, [l ?? 0, m ?? 0, s ?? 0]);
}

const luminance = ([r, g, b]: Triple): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;
const numbered = LANGUAGES.map((_, index) => index);

test.each(["light", "dark"] as const)("ten languages have distinguishable colours in the %s theme", (theme) => {
  const ground = luminance(color("ground", theme));
  for (const index of numbered) {
    const [low, high] = [luminance(color(`language-${index}`, theme)), ground].sort((a, b) => a - b);
    expect(((high ?? 0) + 0.05) / ((low ?? 0) + 0.05), `contrast of ${LANGUAGES[index]}`).toBeGreaterThanOrEqual(3);
  }
  for (const [name, vision] of Object.entries(VISIONS)) {
    const labs = numbered.map((index) => seen(color(`language-${index}`, theme), vision));
    for (const a of numbered)
      for (const b of numbered.slice(a + 1)) {
        const distance = Math.hypot(...[0, 1, 2].map((axis) => (labs[a]?.[axis] ?? 0) - (labs[b]?.[axis] ?? 0)));
        // Side by side, a distance of 0.02 is just noticeable.
        const least = name === "usual" ? 0.12 : 0.08;
        expect(distance, `${LANGUAGES[a]} and ${LANGUAGES[b]}, ${name}`).toBeGreaterThan(least);
      }
  }
});

test("case and dialect do not change the colour", () => {
  const of = (language: string): string => languageClass(Object.assign(Object.create(null), { language }));
  expect(of("java")).toBe(of("Java"));
  expect(of("TypeScript")).toBe(of("JavaScript"));
  expect(of("Brainfuck")).toBe("language-other");
  expect(new Set(LANGUAGES.map(of)).size).toBe(10);
});
