import { expect, test } from 'vitest'
import { hasOnlyLoopback } from './sandbox-acts.ts'

const head = 'Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop|bytes    packets\n'

test.each([
  [`${head}    lo:       0       0    0    0\n`, true],
  // As gVisor writes it.
  [`${head}    lo:       0       0    0    0\n\n`, true],
  [`${head}    lo:       0       0    0    0\n  eth0: 1 2 3 4\n`, false],
  [`${head}  eth0: 1 2 3 4\n`, false],
  [`${head}    lo: 0 0\n tunl0@NONE: 0 0\n`, false],
  [`${head}   lo0: 0 0\n`, false],
  [head, false],
  ['', false],
])('a network of loopback alone is told by what the system lists (%#)', (interfaces, only) => {
  expect(hasOnlyLoopback(interfaces)).toBe(only)
})
