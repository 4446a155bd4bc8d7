import { expect, test } from 'vitest'
import { paintFor, palette } from './colours.ts'

/** Red, green and blue of one of the 216 colours of the cube (xterm), from 0 to 255. */
function rgbOf(index: number): number[] {
  const at = index - 16
  return [Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((step) => (step === 0 ? 0 : 55 + step * 40))
}

/** The contrast of two colours as WCAG 2 defines it. */
function contrast(one: readonly number[], other: readonly number[]): number {
  const [light, dark] = [one, other]
    .map((rgb) => {
      const [red, green, blue] = rgb.map((value) => {
        const share = value / 255
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
      }) as [number, number, number]
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    })
    .toSorted((a, b) => b - a) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

const backgrounds: Readonly<Record<string, readonly number[]>> = {
  black: [0, 0, 0],
  'dark grey': [30, 30, 30],
  'the dark of Solarized': [0, 43, 54],
  white: [255, 255, 255],
  'the light of Solarized': [253, 246, 227],
}

test.each(Object.entries(palette))('%s is read on dark and on light', (_, index) => {
  for (const [name, background] of Object.entries(backgrounds))
    expect(contrast(rgbOf(index), background), name).toBeGreaterThan(3)
  expect(contrast(rgbOf(index), backgrounds['white']!)).toBeGreaterThan(3.6)
})

test('the yellow and the cyan of xterm would not be', () => {
  expect(contrast([205, 205, 0], [255, 255, 255])).toBeLessThan(2)
  expect(contrast([0, 205, 205], [255, 255, 255])).toBeLessThan(2.2)
})

test('a terminal gets the colours that it has', () => {
  expect(paintFor('palette')('failed', 'bad')).toBe('\u001b[38;5;167mfailed\u001b[0m')
  expect(paintFor('basic')('failed', 'bad')).toBe('\u001b[31mfailed\u001b[0m')
  expect(paintFor('palette')('ID', 'dim')).toBe('\u001b[2mID\u001b[0m')
  expect(paintFor('none')('failed', 'bad')).toBe('failed')
})
