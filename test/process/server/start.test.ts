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
import { hasPostgres, openPostgres } from '../../kit/database.ts'
import { programFile } from '../../kit/program-file.ts'
import { Program, waitFor } from '../../kit/programs.ts'

// Starts of the control plane on one data folder.

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

const run = (name: string, args: readonly string[], env: Record<string, string> = {}) =>
  new Program({
    name,
    cwd: folder,
    logPath: join(folder, `${name}.log`),
    args: [programFile('control-plane'), ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, SVC_DATA_DIR: join(folder, 'odd'), ...compileCache, ...env },
  })
/** What it printed, but for lines of the log. */
const saidBy = ({ log }: Program) =>
  log
    .split('\n')
    .filter((line) => !line.startsWith('{'))
    .join('\n')

test.each([
  [['start', '--host', '999.1.1.1', '--port', '0'], 'The host 999.1.1.1 cannot be found'],
  [['start', '--host', '192.0.2.1', '--port', '0'], '192.0.2.1 is no address of this machine'],
  [['start', '--database-url', 'postgres://svc@nowhere.invalid/svc'], 'The host nowhere.invalid cannot be found'],
  [['start', '--data-dir', '/proc/x/y'], 'The folder /proc/x cannot be made'],
  [['start', '--data-dir', '/dev/null'], 'The folder /dev/null cannot be made'],
  [['company', 'list', '--data-dir', '/proc/x'], 'The folder /proc/x cannot be made'],
  [['login-link', '--data-dir', '/proc/x', '--email', 'a@x.example'], 'There is no database at /proc/x/svc.db'],
  [
    ['token', 'create', '--email', 'first@x.example', '--email', 'last@x.example'],
    'Nobody has the address last@x.example.',
  ],
  [['token', 'create'], 'Missing required argument: email'],
])('svc-server %j says what is wrong, and no more', async (args, said) => {
  const program = run(`odd-${args.join('').replaceAll(/[^a-z]/g, '')}`, args)
  expect((await program.exited).code).toBe(1)
  expect(saidBy(program)).toContain(said)
  expect(saidBy(program)).not.toMatch(/^\s+at /m)
})

test.each<[string, readonly string[], Record<string, string>, string]>([
  ['flagless', ['start', '--port'], {}, 'Not enough arguments following: port'],
  ['flag', ['start', '--prot', '1'], {}, 'Unknown argument: prot'],
  [
    'port',
    ['start', '--port', 'x'],
    {},
    '--port must be a whole number from 0 to 65535; it is "x". Example: --port 4400',
  ],
  ['url', ['start'], { SVC_DATABASE_URL: 'postgres://svc:hu/sh@db/svc' }, 'percent-encoded'],
  ['url-command', ['session', 'list'], { SVC_DATABASE_URL: 'postgres://svc:hu@sh@db/svc' }, 'percent-encoded'],
  ['lease', ['start'], { SVC_HEARTBEAT_MS: '100000' }, 'must be shorter than SVC_LEASE_MS (90000, the default)'],
  [
    'models',
    ['start', '--port', '0'],
    { SVC_MODELS_FILE: '/nowhere.json' },
    'SVC_MODELS_FILE: /nowhere.json cannot be used',
  ],
  [
    'services',
    ['start', '--port', '0'],
    { SVC_SERVICES_FILE: '/nowhere.json' },
    'SVC_SERVICES_FILE: /nowhere.json cannot be used',
  ],
])('a start that no restart can mend (%s) exits with status 78', async (name, args, env, said) => {
  const program = run(`unusable-${name}`, args, env)
  expect((await program.exited).code).toBe(78)
  expect(saidBy(program)).toContain(said)
  expect(saidBy(program)).not.toMatch(/^\s+at |hu.sh/m)
})

test.skipIf(!hasPostgres())(
  'a login that PostgreSQL does not know exits with status 78, a database that it does not have with 1',
  async () => {
    const database = await openPostgres()
    try {
      const [login, name] = [new URL(database.url), new URL(database.url)]
      login.searchParams.set('user', 'nobody-of-this-name')
      name.pathname = '/nothing-of-this-name'
      for (const [url, status] of [
        [login, 78],
        [name, 1],
      ] as const) {
        const program = run(`login-${status}`, ['start', '--port', '0', '--database-url', url.href])
        expect((await program.exited).code).toBe(status)
        expect(saidBy(program)).toContain('The database refuses the connection: ')
      }
    } finally {
      await database.close()
    }
  },
)

test('a server whose secrets were sealed with another key exits with status 78, and commands of the operator work', async () => {
  const data = ['--data-dir', join(folder, 'keys')]
  const env = { SVC_SECRETS_KEY: '1'.repeat(64) }
  const first = run('keys-1', ['start', '--port', '0', ...data], env)
  const file = join(folder, 'keys', 'server.json')
  await waitFor(() => existsSync(file), 'it serves', { about: () => first.log })
  const { url } = JSON.parse(readFileSync(file, 'utf8')) as { url: string }
  const token = readFileSync(join(folder, 'keys', 'login-token'), 'utf8').trim()
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'idempotency-key': 'made-once-for-all',
  }
  const body = JSON.stringify({ name: 'NAME', value: 'sealed' })
  const made = await fetch(`${url}/api/v1/secrets`, { method: 'POST', headers, body })
  expect(made.status, await made.text()).toBe(201)
  await first.end()
  const second = run('keys-2', ['start', '--port', '0', ...data], { SVC_SECRETS_KEY: '2'.repeat(64) })
  expect((await second.exited).code).toBe(78)
  expect(saidBy(second)).toContain('The server does not start: ')
})

test('with an issuer for signing in, a person is added without a token, unless one is asked for', async () => {
  const oidc = { SVC_OIDC_ISSUER: 'https://id.invalid', SVC_OIDC_CLIENT_ID: 'svc', SVC_OIDC_CLIENT_SECRET: 'hush' }
  const data = ['--data-dir', join(folder, 'issuer')]
  const add = async (name: string, more: readonly string[], env: Record<string, string>) => {
    const args = ['user', 'add', '--name', name, '--email', `${name}@x.example`, ...more, ...data]
    const program = run(`add-${name}`, args, env)
    await program.exited
    return JSON.parse(saidBy(program) || program.log) as { userId: string; token?: string; workspace: string }
  }
  expect(await add('ada', [], oidc)).toEqual({
    userId: expect.stringMatching(/^usr_/),
    workspaceId: expect.any(String),
    workspace: 'main',
  })
  expect((await add('bob', ['--token'], oidc)).token).toMatch(/^svc_pat_/)
  expect((await add('cid', ['--expires-in', '30d'], oidc)).token).toMatch(/^svc_pat_/)
  expect((await add('dan', [], {})).token).toMatch(/^svc_pat_/)
  expect((await add('eve', ['--no-token'], {})).token).toBeUndefined()
  const list = run('add-list', ['token', 'list', ...data])
  await list.exited
  const { tokens } = JSON.parse(list.log) as { tokens: { email: string; expiresAt: string | null }[] }
  expect(tokens.map(({ email, expiresAt }) => [email, expiresAt !== null]).toReversed()).toEqual([
    ['bob@x.example', false],
    ['cid@x.example', true],
    ['dan@x.example', false],
  ])
})

test("the operator's commands touch no files, and need no keys of the bucket in which they lie", async () => {
  const env = { SVC_FILES_URL: 's3://bucket/prefix?endpoint=http://127.0.0.1:1' }
  const command = run('keyless', ['company', 'list', '--data-dir', join(folder, 'keyless')], env)
  expect([(await command.exited).code, command.log]).toEqual([0, '{"companies":[]}\n'])
  const server = run('keyless-server', ['start', '--port', '0', '--data-dir', join(folder, 'keyless')], env)
  expect((await server.exited).code).toBe(78)
  expect(saidBy(server)).toContain('SVC_FILES_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
})

test('a server names settings that are none and a catalog that is not there, and starts', async () => {
  const program = run('warned', ['start', '--port', '0', '--data-dir', join(folder, 'warned')], {
    SVC_PUBLICURL: 'hush',
    SVC_SPOOL_PAGES: '100',
    SVC_WORKFLOW_CATALOG_DIR: join(folder, 'nowhere'),
  })
  try {
    await waitFor(() => program.log.includes('"listening"'), 'it serves', { about: () => program.log })
    const warnings = program.log
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { level: number; msg: string })
      .filter(({ level }) => level >= 40)
    expect(warnings.map(({ msg }) => msg)).toEqual([
      'SVC_PUBLICURL is no setting and is ignored. Did you mean SVC_PUBLIC_URL?',
      expect.stringMatching(/^the folder of workflow programs \(SVC_WORKFLOW_CATALOG_DIR\) cannot be read: ENOENT/),
    ])
    expect(program.log).not.toMatch(/hush|"stack"/)
  } finally {
    await program.end()
  }
})
