import { expect, test } from 'vitest'
import { pathText } from './path-text.ts'

test.each([
  [Buffer.from('plain/path.ts'), 'plain/path.ts'],
  [Buffer.from('ümläut "q"\n'), 'ümläut "q"\n'],
  [Buffer.from([0x63, 0xe9, 0x0a, 0x22, 0x5c, 0x01]), '"c\\351\\n\\"\\\\\\001"'],
])('a path of bytes as text', (bytes, text) => {
  expect(pathText(bytes.toString('latin1'))).toBe(text)
})
