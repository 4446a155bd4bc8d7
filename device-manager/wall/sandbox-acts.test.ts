import { expect, test } from 'vitest'
import { hasOnlyLoopback, isGvisor } from './sandbox-acts.ts'

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

test.each([
  ['Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n', true],
  ['Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n', true],
  [
    'Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29)\n',
    false,
  ],
  ['', false],
])('the devices of gVisor are told from those that an engine hands in by what its kernel says (%#)', (version, is) => {
  expect(isGvisor(version)).toBe(is)
})
