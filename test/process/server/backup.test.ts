import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileCache } from '../../kit/compile-cache.ts'
import { programFile } from '../../kit/program-file.ts'
import { TestServer } from '../../kit/system-server.ts'

// Backups of a server that serves, and servers that are made of them, all as programs. `restore.test.ts` has what is refused.

let folder: string
let server: TestServer
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-backup-'))
  server = new TestServer({ name: 'first', root: folder, env: {}, databaseUrl: null, tokenOf: null })
  await server.start()
})
afterAll(async () => {
  await server?.end()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

interface Ended {
  status: number | null
  said: string
  // Tests look into answers of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  value: any
}

async function command(dataDir: string, ...args: string[]): Promise<Ended> {
  const line = ['--disable-warning=ExperimentalWarning', programFile('control-plane'), ...args, '--data-dir', dataDir]
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, ...compileCache }
  const child = spawn(process.execPath, line, { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(child, 'exit')
  const [stdout, said] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [status] = (await exit) as [number | null]
  return { status, said, value: stdout === '' ? null : JSON.parse(stdout) }
}

const textOf = (number: number) => `file ${number} `.repeat(1 + number * 4_000)

async function upload(number: number): Promise<string> {
  const contentBase64 = Buffer.from(textOf(number)).toString('base64')
  return (await server.api.call<{ id: string }>('POST', '/files', { name: `${number}.txt`, contentBase64 })).id
}

async function downloaded({ api, url }: TestServer, id: string): Promise<string> {
  const made = await api.call<{ url: string }>('GET', `/files/${id}/download`)
  const { pathname, search } = new URL(made.url)
  return (await fetch(url + pathname + search)).text()
}

/** A server of a folder that `restore` has filled. */
function restoredServer(name: string): TestServer {
  const restored = new TestServer({ name, root: folder, env: {}, databaseUrl: null, tokenOf: server })
  rmSync(join(restored.dataDir, 'svc.db'))
  return restored
}

test('a backup of a server that serves is restored in another folder, and a server there has all that the backup has', async () => {
  await server.api.call('POST', '/secrets', { name: 'TOKEN', value: 'a-value-that-is-sealed', provider: 'npm' })
  const before = [await upload(1), await upload(2)]
  // Uploads that are under way, some of which the backup has.
  const over = new AbortController()
  const uploading = (async () => {
    const ids: string[] = []
    for (let number = 3; !over.signal.aborted; number++) ids.push(await upload(3 + (number % 5)))
    return ids
  })()
  const file = join(folder, 'one.tar')
  const made = await new Promise<Ended>((resolve) =>
    setImmediate(() => resolve(command(server.dataDir, 'backup', file))),
  )
  over.abort()
  expect((await uploading).length).toBeGreaterThan(1)
  expect(made).toMatchObject({ status: 0, said: '', value: { file, key: 'archive', filesGone: 0 } })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(made.value.sizeBytes).toBe(statSync(file).size)

  // Any tar reads it, and any sha256sum checks it.
  const unpacked = join(folder, 'unpacked')
  mkdirSync(unpacked)
  execFileSync('tar', ['-xf', file, '-C', unpacked])
  expect(execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: unpacked, encoding: 'utf8' })).toBe('')
  expect(JSON.parse(readFileSync(join(unpacked, 'backup.json'), 'utf8'))).toMatchObject({ format: 1, files: 'archive' })

  const other = restoredServer('other')
  const restored = await command(other.dataDir, 'restore', file)
  expect(restored).toMatchObject({ status: 0, said: '', value: { replaced: [], filesMissing: 0, key: 'archive' } })
  expect(restored.value.files).toBe(made.value.files)
  await other.start()
  try {
    expect(other.port).not.toBe(server.port)
    const { data } = await other.api.call<{ data: { id: string; name: string }[] }>('GET', '/files?limit=100')
    expect(data.length).toBe(made.value.files)
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(before))
    for (const { id, name } of data) expect(await downloaded(other, id)).toBe(textOf(parseInt(name, 10)))
    expect(readFileSync(join(other.dataDir, 'secrets.key'))).toEqual(readFileSync(join(server.dataDir, 'secrets.key')))
  } finally {
    await other.end()
  }
})

test('what an operator asks of a folder without a database is refused, and makes none there', async () => {
  const mistyped = join(folder, 'mistyped')
  for (const line of [
    'usage --json',
    'retention --runs 9',
    'keys status',
    'keys rotate-run-tokens',
    'backup none.tar',
    'token list',
    'session list',
    'device list',
  ])
    expect(await command(mistyped, ...line.split(' '))).toMatchObject({
      status: 1,
      said: expect.stringContaining(`There is no database at ${join(mistyped, 'svc.db')}`),
    })
  expect(existsSync(mistyped)).toBe(false)
})

test('a backup into what is no folder, or takes no files, says so', async () => {
  const refusedIn = async (place: string, said: string) =>
    expect(await command(server.dataDir, 'backup', join(place, 'b.tar'))).toMatchObject({
      status: 1,
      said: expect.stringContaining(said),
    })
  await refusedIn(join(server.dataDir, 'svc.db'), 'There is no folder')
  if (process.platform === 'linux') await refusedIn('/proc', 'No file can be made in /proc')
})

test('without its key a backup says so, and the server that is made of it asks for the key', async () => {
  const file = join(folder, 'keyless.tar')
  expect(await command(server.dataDir, 'backup', file, '--no-key')).toMatchObject({
    status: 0,
    value: { key: 'left_out' },
  })
  expect(execFileSync('tar', ['-tf', file], { encoding: 'utf8' })).not.toContain('secrets.key')
  const other = restoredServer('keyless')
  expect(await command(other.dataDir, 'restore', file)).toMatchObject({ status: 0, value: { key: 'left_out' } })
  await expect(other.start()).rejects.toThrow('the key of the secrets in this database is missing')
})

test('a restore is refused while a server has the state, and over one that is there, until it is told to set that aside', async () => {
  const file = join(folder, 'two.tar')
  expect(await command(server.dataDir, 'backup', file)).toMatchObject({ status: 0 })
  expect(await command(server.dataDir, 'backup', file)).toMatchObject({
    status: 1,
    said: expect.stringContaining('is there already'),
  })
  const served = await command(server.dataDir, 'restore', file, '--replace')
  expect(served).toMatchObject({ status: 1, said: expect.stringContaining('A control plane serves') })
  const after = await upload(9)

  const { url } = server
  await server.kill9()
  const there = await command(server.dataDir, 'restore', file)
  expect(there).toMatchObject({ status: 1, said: expect.stringContaining('--replace') })
  const { value } = await command(server.dataDir, 'restore', file, '--replace')
  expect(value.replaced).toHaveLength(2)
  await server.start()
  expect(server.url).toBe(url)
  expect((await server.api.raw('GET', `/files/${after}`)).status).toBe(404)

  // What was set aside is a whole state, with what had only been in its log when the server was killed.
  const old = new TestServer({ name: 'old', root: folder, env: {}, databaseUrl: null, tokenOf: server })
  for (const path of value.replaced as string[])
    copyFileSync(path, join(old.dataDir, basename(path).replace(/\.replaced-.*/, '')))
  cpSync(join(server.dataDir, 'files'), join(old.dataDir, 'files'), { recursive: true })
  await old.start()
  try {
    expect(await downloaded(old, after)).toBe(textOf(9))
  } finally {
    await old.end()
  }
})
