import { idFrom } from '../../../shared/lib/ids.ts'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { placesIn } from '../../../device-manager/setup/places.ts'
import { Journal } from '../../../device-manager/run/journal.ts'
import type { RunState } from '../../../device-manager/run/machine.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { programFile } from '../../kit/program-file.ts'

const quietLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

let stateDir: string
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'svc-start-'))
})
afterEach(() => rmSync(stateDir, { recursive: true, force: true }))

test('of two daemons that start in the same moment one has the place, and both know which', async () => {
  const rounds = 40
  const script = resolve(import.meta.dirname, 'take-place.ts')
  const args = [script, stateDir, String(Date.now() + 1_500), String(rounds)]
  const children = [0, 1].map(() => spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] }))
  const said = await Promise.all(
    children.map(async ({ stdout }) => {
      for await (const line of stdout) return JSON.parse(String(line)) as { pid: number; holders: (number | null)[] }
      throw new Error('it said nothing')
    }),
  )
  for (const child of children) child.stdin.end()
  const [a, b] = said as [(typeof said)[0], (typeof said)[0]]
  for (let round = 0; round < rounds; round++) {
    const holders = [a.holders[round], b.holders[round]]
    expect(holders[0] === null ? [null, a.pid] : [b.pid, null], `round ${round}`).toEqual(holders)
  }
})

test('a journal that is no database any more is set aside, and the daemon begins with an empty one', () => {
  const path = join(stateDir, 'journal.db')
  const open = () => new Journal({ path, world: realWorld, log: quietLog, onCaughtUp: () => undefined })
  const first = open()
  first.write(idFrom('run_a'), { fence: 1 } as RunState)
  first.close()
  writeFileSync(path, 'x'.repeat(20_000))
  const second = open()
  expect(second.load()).toEqual({ states: [], unreadable: [] })
  second.close()
  expect(readFileSync(`${path}.corrupt`, 'utf8')).toContain('xxx')
  expect(open().load().states).toEqual([])
})

test('a journal is readable by nobody else, also one from before', () => {
  chmodSync(stateDir, 0o755)
  const path = join(stateDir, 'journal.db')
  const open = () => {
    const journal = new Journal({ path, world: realWorld, log: quietLog, onCaughtUp: () => undefined })
    journal.write(idFrom('run_a'), { fence: 1 } as RunState)
    const modes = readdirSync(stateDir).map((name) => statSync(join(stateDir, name)).mode & 0o777)
    journal.close()
    // The file, its log, what SQLite shares of it, and the room that is kept for a full disk.
    expect(modes).toHaveLength(4)
    return [...new Set(modes)]
  }
  expect(open()).toEqual([0o600])
  chmodSync(path, 0o644)
  expect(open()).toEqual([0o600])
})

function startDaemon() {
  const env = { PATH: '/usr/bin:/bin', HOME: stateDir, SVC_STATE_DIR: stateDir }
  const ended = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', programFile('device-manager'), 'run'],
    { env, timeout: 30_000 },
  )
  return { status: ended.status, said: ended.stderr.toString() }
}

test('a folder that cannot be used is told in a sentence', () => {
  const places = placesIn(stateDir)
  const identity = { publicId: 'dvc_0123456789abcdef', deviceId: 'x', displayName: 'x', server: 'http://127.0.0.1:9' }
  writeFileSync(places.token, 'token\n')
  writeFileSync(places.identity, 'not json')
  expect(startDaemon()).toEqual({
    status: 78,
    said: `${places.identity} is damaged. Remove it and type: svc device connect\n`,
  })
  writeFileSync(places.identity, JSON.stringify(identity))
  mkdirSync(places.spool)
  const { status, said } = startDaemon()
  expect(said).toMatch(/^The device manager cannot start: unable to open database file.*\n$/)
  expect(status).toBe(74)
  expect(existsSync(places.controlSocket)).toBe(false)
})
