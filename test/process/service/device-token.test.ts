import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DeviceToken } from '../../../device-manager/daemon/device-token.ts'
import { placesIn } from '../../../device-manager/setup/places.ts'

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

test('a new token that cannot be written is not used before it is on the disk; the newest one counts', () => {
  const places = placesIn(mkdtempSync(join(tmpdir(), 'svc-token-')))
  try {
    writeFileSync(places.token, 'old\n')
    // A folder stands where the file is written first.
    const inTheWay = `${places.token}.${process.pid}.new`
    mkdirSync(inTheWay)
    const timers: (() => void)[] = []
    const token = new DeviceToken('old', {
      places,
      log,
      keepsToken: true,
      world: { after: (_ms, fn) => (timers.push(fn), () => {}) },
    })
    token.replace('second')
    token.replace('third')
    expect(token.value).toBe('old')
    expect(readFileSync(places.token, 'utf8')).toBe('old\n')
    rmdirSync(inTheWay)
    for (const fire of timers) fire()
    expect(token.value).toBe('third')
    expect(readFileSync(places.token, 'utf8')).toBe('third\n')
  } finally {
    rmSync(places.stateDir, { recursive: true })
  }
})
