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
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileCache } from '../../kit/compile-cache.ts'
import { programFile } from '../../kit/program-file.ts'
import { Program, waitFor } from '../../kit/programs.ts'

/** Starts of the control plane on one data folder. */

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-start-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))

const start = (name: string, data = 'data') =>
  new Program({
    name,
    cwd: folder,
    logPath: join(folder, `${name}.log`),
    args: [programFile('control-plane'), 'start', '--port', '0', '--data-dir', join(folder, data)],
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...compileCache },
  })
const serverFile = () => join(folder, 'data', 'server.json')
const pidThatServes = () =>
  existsSync(serverFile()) ? (JSON.parse(readFileSync(serverFile(), 'utf8')) as { pid: number }).pid : null

test('of servers that start together on one SQLite file one serves, and the others say why they do not', async () => {
  const programs = ['a', 'b', 'c'].map((name) => start(name))
  try {
    await waitFor(() => programs.filter((program) => program.isRunning).length === 1 && pidThatServes(), 'one serves')
    const [serving] = programs.filter((program) => program.isRunning)
    expect(pidThatServes()).toBe(serving!.pid)
    for (const other of programs.filter((program) => program !== serving)) {
      expect((await other.exited).code).toBe(1)
      expect(other.log).toMatch(/^A control plane serves .*svc\.db already/m)
    }
    // One that was killed leaves nothing that is in the way of the next.
    await serving!.kill9()
    programs.push(start('d'))
    await waitFor(() => pidThatServes() === programs[3]!.pid, 'the next one serves', { about: () => programs[3]!.log })
  } finally {
    for (const program of programs) await program.end()
  }
})

test('in a folder that others may read, the files of a server are its own, also those from before', async () => {
  const data = join(folder, 'open')
  mkdirSync(data)
  chmodSync(data, 0o755)
  writeFileSync(join(data, 'secrets.key'), '0'.repeat(64), { mode: 0o644 })
  const program = start('open', 'open')
  try {
    await waitFor(() => existsSync(join(data, 'server.json')), 'it serves', { about: () => program.log })
    const others = readdirSync(data).filter((name) => (statSync(join(data, name)).mode & 0o077) !== 0)
    expect([readdirSync(data).includes('svc.db-wal'), others]).toEqual([true, []])
    expect(program.log).toContain('others could read these files')
  } finally {
    await program.end()
  }
})

test('a first start that cannot keep its login token is the first start still', async () => {
  const token = join(folder, 'tokenless', 'login-token')
  mkdirSync(token, { recursive: true })
  const failed = start('tokenless-1', 'tokenless')
  expect((await failed.exited).code).not.toBe(0)
  rmSync(token, { recursive: true })
  const program = start('tokenless-2', 'tokenless')
  try {
    await waitFor(() => existsSync(join(folder, 'tokenless', 'server.json')), 'it serves', { about: () => program.log })
    expect(readFileSync(token, 'utf8')).toMatch(/^svc_pat_\S+\n$/)
  } finally {
    await program.end()
  }
})

test.each([
  [['start', '--host', '999.1.1.1', '--port', '0'], 'The host 999.1.1.1 cannot be found'],
  [['start', '--host', '192.0.2.1', '--port', '0'], '192.0.2.1 is no address of this machine'],
  [['start', '--database-url', 'postgres://svc@nowhere.invalid/svc'], 'The host nowhere.invalid cannot be found'],
  [['start', '--port'], 'Not enough arguments following: port'],
  [
    ['token', 'create', '--email', 'first@x.example', '--email', 'last@x.example'],
    'Nobody has the address last@x.example.',
  ],
])('svc-server %j says what is wrong, and no more', async (args, said) => {
  const name = `odd-${args.join('').replaceAll(/[^a-z]/g, '')}`
  const program = new Program({
    name,
    cwd: folder,
    logPath: join(folder, `${name}.log`),
    args: [programFile('control-plane'), ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, SVC_DATA_DIR: join(folder, 'odd'), ...compileCache },
  })
  expect((await program.exited).code).toBe(1)
  const log = program.log.split('\n').filter((line) => !line.startsWith('{'))
  expect(log.join('\n')).toContain(said)
  expect(log.join('\n')).not.toMatch(/^\s+at /m)
})
