import { mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stateDirTrouble } from '../../shared/lib/places.ts'
import { makeHome, type Home } from './run-svc.ts'
import { programFile } from '../kit/program-file.ts'
import { spawnSync } from 'node:child_process'

// A state folder in which no socket can be made, since its path is too long.

let home: Home
beforeAll(() => {
  home = makeHome()
})
afterAll(() => home.remove())

const folderOf = (bytes: number) => join(home.dir, 'd'.repeat(bytes - Buffer.byteLength(home.dir) - 1))

test('connect refuses before it asks any server, and names length and variable', async () => {
  const end = await home.svc(['device', 'connect'], { env: { SVC_STATE_DIR: folderOf(97) } })
  expect(end.status).toBe(2)
  expect(end.stderr).toMatch(/has a path of 97 bytes.*at most 9[16]\. Name a shorter one by SVC_STATE_DIR/)
})

test('a daemon that was enrolled by an older svc says the same, and is not started again', () => {
  const stateDir = folderOf(97)
  mkdirSync(stateDir, { recursive: true })
  const env = { PATH: process.env['PATH'] ?? '', HOME: home.dir, SVC_STATE_DIR: stateDir }
  const { status, stderr } = spawnSync(process.execPath, [programFile('device-manager'), 'run'], {
    env,
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([78, expect.stringContaining('has a path of 97 bytes')])
})

test.each([
  ['linux', 96],
  ['darwin', 91],
])('bytes are counted, and on %s the longest folder that is allowed has %i', (platform, most) => {
  const troubleOf = (letters: string) => stateDirTrouble(`/${letters}`, platform)
  expect(troubleOf('d'.repeat(most - 1))).toBeNull()
  expect(troubleOf('d'.repeat(most))).toContain(`${most + 1} bytes`)
  const fitting = Math.floor((most - 1) / 2)
  expect(troubleOf('ä'.repeat(fitting))).toBeNull()
  expect(troubleOf('ä'.repeat(fitting + 1))).toContain(`${fitting * 2 + 3} bytes`)
})

test.runIf(process.platform === 'linux')(
  'this system makes a socket at the longest path that is allowed, and at no longer one',
  async () => {
    const listens = (bytes: number) =>
      new Promise<boolean>((resolve) => {
        const folder = folderOf(bytes)
        mkdirSync(folder, { recursive: true })
        const server = createServer()
        server.once('error', () => resolve(false))
        server.listen(join(folder, 'daemon.sock'), () => server.close(() => resolve(true)))
      })
    expect([await listens(96), await listens(97)]).toEqual([true, false])
  },
)
