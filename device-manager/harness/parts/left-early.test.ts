import { expect, it } from 'vitest'
import { lastWords, leftEarly } from './left-early.ts'

const red = '\u{1b}[2m2026\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m it broke\u{7}\r\n'
const when = 'in the middle of its turn'

it('tells the last line of what left by itself, as a person reads it', () => {
  expect(leftEarly('It', { exitCode: 1, signal: null }, { stderrTail: red, when })).toBe(
    'It exited with status 1 in the middle of its turn: 2026 ERROR it broke',
  )
  expect(leftEarly('It', { exitCode: null, signal: null }, { stderrTail: '', when })).toBe(
    'It exited with status unknown in the middle of its turn.',
  )
  expect(lastWords('{\n  message: "No such thing",\n  }\n}\n')).toBe('message: "No such thing",')
})

it.each([
  [{ exitCode: null, signal: 'SIGKILL' }, 'SIGKILL'],
  [{ exitCode: 143, signal: null }, 'SIGTERM'],
  [{ exitCode: 137, signal: null }, 'SIGKILL'],
])('blames no line for a signal: %o', (exit, signal) => {
  expect(leftEarly('It', exit, { stderrTail: red, when })).toBe(`It was killed by ${signal} in the middle of its turn.`)
})
