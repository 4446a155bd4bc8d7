import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileCache } from '../../kit/compile-cache.ts'
import { programFile } from '../../kit/program-file.ts'
import { Program, waitFor } from '../../kit/programs.ts'
import { smallDisk, whyNoSmallDisk, type SmallDisk } from '../../kit/small-disk.ts'
import { TestServer } from '../../kit/system-server.ts'

// A server and the operator's commands on one SQLite file, and on a disk without room.

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-busy-'))
})
afterAll(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }))

function operator(dataDir: string, args: readonly string[], via: readonly string[] = []): Program {
  const name = `operator-${args.join('-').replaceAll(/[^a-z0-9]+/gi, '-')}`
  return new Program({
    name,
    cwd: root,
    logPath: join(root, `${name}.log`),
    via,
    args: [programFile('control-plane'), ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: root, SVC_DATA_DIR: dataDir, ...compileCache },
  })
}

const createAgent = ({ url, token }: { url: string; token: string }, name: string) =>
  fetch(`${url}/api/v1/agents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  })

const sqlWords = /\b(?:select|insert|update|begin|commit|create table)\b/i

describe('beside a server', () => {
  let server: TestServer
  beforeAll(async () => {
    server = new TestServer({ name: 'busy', root, env: {}, databaseUrl: null, tokenOf: null })
    await server.start()
  })
  afterAll(() => server?.end())

  const write = (title: string) => createAgent(server, title)

  test('that is busy, each command of the operator does its work, and no request is refused for it', async () => {
    const over = new AbortController()
    const statuses = new Set<number>()
    const busy = Array.from({ length: 4 }, async (_, each) => {
      for (let count = 0; !over.signal.aborted; count++) {
        const reply = await write(`a${each}x${count}`)
        await reply.arrayBuffer()
        statuses.add(reply.status)
      }
    })
    const commands = [
      ['user', 'add', '--name', 'Ada', '--email', 'ada@x.example', '--workspace', 'main'],
      ['login-link', '--email', 'owner@localhost'],
      ['token', 'create', '--email', 'owner@localhost'],
      ['user', 'add', '--name', 'Eve', '--email', 'eve@x.example', '--workspace', 'other'],
      ['session', 'list'],
    ].map((args) => operator(server.dataDir, args))
    const exits = await Promise.all(commands.map((command) => command.exit(60_000)))
    over.abort()
    await Promise.all(busy)
    const said = commands.map(({ log }) => log).join('')
    expect(
      exits.map(({ code }) => code),
      said,
    ).toEqual(commands.map(() => 0))
    expect([...statuses]).toEqual([201])
  })

  test('a command and a request wait for whoever holds the file, and the server answers others meanwhile', async () => {
    const file = join(server.dataDir, 'svc.db')
    const holder = new Database(file)
    holder.exec('begin immediate')
    const command = operator(server.dataDir, ['login-link', '--email', 'owner@localhost', '--workspace', 'main'])
    const written = write('held')
    const hasOpened = () =>
      readdirSync(`/proc/${command.pid}/fd`).some((fd) => readlinkSync(`/proc/${command.pid}/fd/${fd}`) === file)
    await waitFor(hasOpened, 'the command has opened the file', { about: () => command.log })
    for (let count = 0; count < 20; count++) expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
    expect(command.isRunning).toBe(true)
    holder.exec('commit')
    holder.close()
    expect((await written).status).toBe(201)
    expect((await command.exit(30_000)).code, command.log).toBe(0)
    expect(command.log).toContain('/sign-in')
  })
})

const why = whyNoSmallDisk()
if (why !== null) process.stderr.write(`NOT RUN: ${why}, so no disk of a server was really full\n`)

describe.skipIf(why !== null)('on a disk that is full', () => {
  let disk: SmallDisk
  const folder = () => join(root, 'small')
  beforeAll(async () => {
    disk = await smallDisk(folder(), 24)
  })
  afterAll(() => disk?.close())

  const start = () => operator(join(folder(), 'data'), ['start', '--port', '0'], disk.via)
  const seen = (name: string) => join(disk.seenAt, 'data', name)
  async function addressOf(program: Program): Promise<string> {
    await waitFor(() => existsSync(seen('server.json')), 'it serves', { about: () => program.log })
    return (JSON.parse(readFileSync(seen('server.json'), 'utf8')) as { url: string }).url
  }
  async function saysWhy(args: readonly string[]): Promise<void> {
    const failed = operator(join(folder(), 'data'), args, disk.via)
    expect((await failed.exit(30_000)).code, failed.log).toBe(1)
    const said = failed.log.split('\n').filter((line) => !line.startsWith('{'))
    expect(said.at(-2)).toMatch(/no room|full/i)
    expect(said.join('\n')).not.toMatch(sqlWords)
    expect(said.join('\n')).not.toMatch(/^\s+at /m)
  }

  test('a server is not ready and says why, and one that is started there, and a command, say it in a sentence', async () => {
    disk.fill()
    await saysWhy(['start', '--port', '0'])
    disk.free()
    const first = start()
    const url = await addressOf(first)
    const token = readFileSync(seen('login-token'), 'utf8').trim()
    const ready = async () => {
      const reply = await fetch(`${url}/readyz`)
      return [reply.status, await reply.json()]
    }
    try {
      expect(await ready()).toEqual([200, { status: 'ready' }])
      disk.fill()
      let count = 0
      await waitFor(async () => {
        const reply = await createAgent({ url, token }, `agent${count++}`)
        expect(await reply.text()).not.toMatch(/insert into|update `/i)
        return reply.status === 503
      }, 'a write is refused')
      expect(await ready()).toEqual([503, { status: 'not_ready', reason: 'disk_full' }])
    } finally {
      await first.kill9()
    }
    rmSync(seen('server.json'))
    disk.fill()
    await saysWhy(['user', 'add', '--name', 'Ada', '--email', 'ada@x.example', '--workspace', 'w'.repeat(40)])
    disk.free()
    const last = start()
    try {
      await addressOf(last)
    } finally {
      await last.end()
    }
  })
})
