import { expect, test } from 'vitest'
import { longLine } from './long-lines.ts'

const word = (chars: number) => 'x'.repeat(chars)

test('a line of a page that is too long is found, also in a list and in a block of commands', () => {
  expect(longLine(`# A page\n\n${word(140)}`)).toBe(-1)
  expect(longLine(`# A page\n\n${word(141)}`)).toBe(2)
  expect(longLine(`- ${word(139)}`)).toBe(0)
  expect(longLine(`\`\`\`sh\nsvc ${word(140)}\n\`\`\``)).toBe(1)
})

test('a row of a table may be long, and none of its cells', () => {
  const row = (...cells: string[]) => `| ${cells.join(' | ')} |`
  expect(longLine([row('a', 'b'), row('---', '-'.repeat(300)), row(word(100), word(140))].join('\n'))).toBe(-1)
  expect(longLine(row(word(141), 'b'))).toBe(0)
  // A bar that is part of a text begins no cell.
  expect(longLine(row(`${word(70)}\\|${word(70)}`))).toBe(0)
})
