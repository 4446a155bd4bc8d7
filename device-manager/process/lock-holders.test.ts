import { expect, test } from 'vitest'
import { parseLocks } from './lock-holders.ts'

const locks = `1: POSIX  ADVISORY  READ 10 fe:00:77 128 128
2: POSIX  ADVISORY  WRITE 11 fe:00:77 120 120
2: -> POSIX  ADVISORY  WRITE 12 fe:00:77 120 120
3: POSIX  ADVISORY  WRITE 13 fe:00:78 120 120
4: POSIX  ADVISORY  WRITE 14 fe:00:77 124 124
5: FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF
6: POSIX  ADVISORY  WRITE 16 fe:00:77 0 EOF
7: OFDLCK ADVISORY  WRITE -1 fe:00:77 120 120
8: POSIX  ADVISORY  READ 17 fe:00:77 120 120
9: POSIX  ADVISORY  WRITE 18 fe:00:77 121 127
`

test('those that hold a lock for writing to that file, and nobody who waits for it or reads', () => {
  expect(parseLocks(locks, 77)).toEqual([11, 16, 18])
  expect(parseLocks(locks, 1)).toEqual([])
  expect(parseLocks('', 77)).toEqual([])
})
