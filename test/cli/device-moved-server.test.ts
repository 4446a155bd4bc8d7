import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { programFile } from '../kit/program-file.ts'
import { waitFor } from '../kit/programs.ts'
import { turnIsolationOff } from '../kit/wall.ts'
import { makeHome, type Finished, type Home } from './run-svc.ts'

// A machine whose server gets another address, with a run that goes on meanwhile; one story in order.

let home: Home
let server: Started
let other: Started
let between: Server

interface Started {
  child: ChildProcess
  url: string
  token: string
}

const json = (end: Finished) => JSON.parse(end.stdout) as Record<string, unknown>
const inHome = (...names: string[]) => join(home.dir, ...names)
const identity = () => JSON.parse(readFileSync(inHome('state', 'identity.json'), 'utf8')) as Record<string, unknown>

async function startServer(data: string): Promise<Started> {
  const folder = inHome(data)
  const flags = ['--disable-warning=ExperimentalWarning', programFile('control-plane'), 'start', '--port', '0']
  const child = spawn(process.execPath, [...flags, '--data-dir', folder], {
    env: { ...home.env, SVC_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const file = join(folder, 'server.json')
  await waitFor(() => existsSync(file) && readFileSync(file, 'utf8').includes(`"pid":${child.pid}`), 'it serves')
  const { url } = JSON.parse(readFileSync(file, 'utf8')) as { url: string }
  return { child, url, token: readFileSync(join(folder, 'login-token'), 'utf8').trim() }
}

async function end({ child }: Started, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await ended
}

const login = (url: string, token: string) => home.svc(['login', '--server', url, '--token', '-'], { input: token })

beforeAll(async () => {
  home = makeHome()
  mkdirSync(inHome('state'), { mode: 0o700 })
  turnIsolationOff(inHome('state'))
  ;[server, other] = await Promise.all([startServer('data'), startServer('other')])
})

afterAll(async () => {
  between?.close()
  await home.svc(['device', 'disconnect', '--local'])
  await Promise.all([end(server), end(other)])
  home.remove()
}, 60_000)

let publicId: string
let runId: string

test('a device follows its server to another address, with its token and its run', async () => {
  expect(await login(server.url, server.token)).toMatchObject({ status: 0 })
  const connected = json(await home.svc(['device', 'connect', '--name', 'mover']))
  publicId = String(connected['publicId'])
  const work = inHome('work')
  mkdirSync(work)
  const { shortId } = json(await home.svc(['folder', 'add', 'work', work]))
  const command = `echo begun > '${inHome('begun')}'; until [ -e '${inHome('go')}' ]; do sleep 0.05; done`
  const agent = ['agent', 'create', '--name', 'Waiter', '--harness', 'command', '--command', command]
  expect(await home.svc([...agent, '--folder', String(shortId)])).toMatchObject({ status: 0 })
  runId = String(json(await home.svc(['agent', 'run', '@waiter', '--prompt', 'x']))['runPublicId'])
  await waitFor(() => existsSync(inHome('begun')), 'the harness is at work')
  const token = readFileSync(inHome('state', 'device-token'), 'utf8')

  await end(server)
  const before = server.url
  server = await startServer('data')
  expect(server.url).not.toBe(before)
  const lost = await home.svc(['device', 'disconnect'])
  expect(lost.status).not.toBe(0)
  expect(lost.stderr).toMatch(/runs_active|--local/)
  expect(await login(server.url, server.token)).toMatchObject({ status: 0 })
  const moved = await home.svc(['device', 'connect'])
  expect(moved, moved.stderr).toMatchObject({ status: 0 })
  expect(json(moved)).toMatchObject({ publicId, server: server.url, link: 'connected' })
  expect(moved.stderr).toContain(`the server of this device was ${before}, and is now ${server.url}`)
  expect(readFileSync(inHome('state', 'device-token'), 'utf8')).toBe(token)
  writeFileSync(inHome('go'), '')
  await waitFor(
    async () => json(await home.svc(['run', 'get', runId]))['status'] === 'succeeded',
    'the run that went on ends well',
  )
})

test('a stranger, also one who passes the question on to the true server, is refused and sees no token', async () => {
  const asked: { path: string; text: string }[] = []
  between = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const path = request.url ?? ''
      asked.push({ path, text: JSON.stringify(request.headers) + body.toString() })
      const { authorization = '' } = request.headers
      const headers = { authorization, 'content-type': 'application/json' }
      const to = path === '/api/device/proof' ? server.url : other.url
      void fetch(`${to}${path}`, { method: request.method!, headers, ...(body.length > 0 && { body }) }).then(
        async (answer) =>
          response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text()),
      )
    })
  }).listen(0, '127.0.0.1')
  await waitFor(() => between.listening, 'it listens')
  const url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`
  for (const where of [url, other.url]) {
    expect(await login(where, other.token)).toMatchObject({ status: 0 })
    const refused = await home.svc(['device', 'connect'])
    expect(refused.status).not.toBe(0)
    expect(identity()).toMatchObject({ publicId, server: server.url })
    if (where === other.url) expect(refused.stderr).toContain('svc device disconnect --local')
  }
  expect(asked.map(({ path }) => path)).toContain('/api/device/proof')
  expect(asked.filter(({ text }) => text.includes('svc_dev_'))).toEqual([])
})

test('a server that is gone is forgotten without it, and where it comes back the machine is the same device', async () => {
  await end(server)
  const lost = await home.svc(['device', 'disconnect'])
  expect(lost.status).not.toBe(0)
  expect(lost.stderr).toContain('svc device disconnect --local')
  expect(json(await home.svc(['device', 'disconnect', '--local']))).toMatchObject({ disconnected: true, publicId })
  expect(existsSync(inHome('state', 'device-token'))).toBe(false)
  expect(json(await home.svc(['device', 'disconnect', '--local']))).toMatchObject({ disconnected: false })
  server = await startServer('data')
  expect(await login(server.url, server.token)).toMatchObject({ status: 0 })
  expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, link: 'connected' })
})

test('a device whose daemon does not run follows as well, and keeps its server where nothing proves to be it', async () => {
  await home.svc(['device', 'disconnect', '--local'])
  expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId })
  const { pid } = JSON.parse(readFileSync(inHome('state', 'daemon.json'), 'utf8')) as { pid: number }
  process.kill(pid, 'SIGKILL')
  await waitFor(async () => (await home.svc(['device', 'status'])).status === 9, 'the daemon is gone')
  await end(server)
  server = await startServer('data')
  expect(await login(server.url, server.token)).toMatchObject({ status: 0 })
  const token = readFileSync(inHome('state', 'device-token'), 'utf8')
  rmSync(inHome('state', 'device-token'))
  expect((await home.svc(['device', 'connect'])).stderr).toContain('device_of_another_server')
  writeFileSync(inHome('state', 'device-token'), token, { mode: 0o600 })
  expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, server: server.url, link: 'connected' })
})
