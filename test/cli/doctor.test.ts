import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { stateFiles } from '../../shared/lib/places.ts'
import { version } from '../../shared/lib/version.ts'
import { refusal, type Answer } from './api-server.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

let home: ServedHome

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const identity = { publicId: 'dvc_1', deviceId: crypto.randomUUID(), displayName: 'laptop', server: 'http://x' }
const workspace = { body: { id: crypto.randomUUID(), name: 'Main' } }
const me = (release: string) => ({ body: { role: 'owner', release } })

/** Signs in at a server that answers so, on a machine that is a device whose manager does not run. */
async function signedIn(answers: Record<string, Answer>) {
  const { url: server } = await home.serve(({ path }) => answers[path] ?? refusal(404, 'route_not_found'))
  mkdirSync(join(home.dir, 'config'), { recursive: true })
  writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server, token: 'svc_pat_x' }))
  return server
}
async function diagnosed(env: Record<string, string> = {}) {
  const { status, stdout } = await home.svc(['doctor'], { env })
  const { ok, findings } = JSON.parse(stdout) as {
    ok: boolean
    findings: { check: string; verdict: string; message: string; fix: string | null }[]
  }
  const of = (check: string) => findings.filter((each) => each.check === check)
  return { status, ok, findings, of }
}

test('a machine from which somebody only calls, with a server that answers, is well', async () => {
  const server = await signedIn({ '/api/v1/workspaces': workspace, '/api/auth/me': me(version) })
  const { status, ok, of } = await diagnosed({ NODE_EXTRA_CA_CERTS: '' })
  expect([status, ok]).toEqual([0, true])
  expect(of('server')).toMatchObject([{ verdict: 'ok', message: `${server} answers` }])
  expect(of('login')).toMatchObject([{ verdict: 'ok' }])
  expect(of('clock')).toMatchObject([{ verdict: 'ok' }])
  expect(of('device')).toMatchObject([{ verdict: 'warning', fix: 'svc device connect' }])
  expect([of('versions'), of('certs')]).toEqual([[], []])
})

test.each([
  [60_000, 'warning', 0],
  [-60_000, 'warning', 0],
  [600_000, 'failed', 1],
] as const)('a clock that is %i ms from that of the server is a %s', async (byMs, verdict, code) => {
  // Of the moment at which it answers: svc may take seconds to start.
  const headers = {
    get Date() {
      return new Date(Date.now() + byMs).toUTCString()
    },
  }
  await signedIn({ '/api/v1/workspaces': { ...workspace, headers }, '/api/auth/me': me(version) })
  const { status, of } = await diagnosed()
  expect(of('clock')).toMatchObject([{ verdict, message: expect.stringMatching(/ (59|60|599|600) seconds apart/) }])
  expect(status).toBe(code)
})

test('a token that is refused, a server that is not there, and no login are told apart', async () => {
  await signedIn({ '/api/v1/workspaces': refusal(401, 'authentication_required') })
  const refused = await diagnosed()
  expect(refused.of('server')).toMatchObject([{ verdict: 'ok' }])
  expect(refused.of('login')).toMatchObject([{ verdict: 'failed', fix: 'svc login' }])
  await home.api.close()
  const away = await diagnosed()
  expect([away.status, away.of('server'), away.of('login')]).toMatchObject([1, [{ verdict: 'failed' }], []])
  writeFileSync(join(home.dir, 'config/login.json'), '{}')
  const nobody = await diagnosed()
  expect([nobody.status, nobody.of('login')]).toMatchObject([1, [{ verdict: 'failed' }]])
})

test('a device whose manager does not run, its folders that cannot be used, and a server of another release are found', async () => {
  const folder = (shortId: string, state: string, deviceId = identity.publicId) => ({
    shortId,
    displayName: shortId,
    state,
    config: { deviceId, rootPath: `/${shortId}` },
  })
  const sources = [folder('fs_1', 'ok'), folder('fs_2', 'missing'), folder('fs_3', 'missing', 'dvc_2')]
  await signedIn({
    '/api/v1/workspaces': workspace,
    '/api/auth/me': me('9.9.9'),
    '/api/v1/folders': { body: { sources } },
  })
  const state = join(home.dir, 'state')
  mkdirSync(state, { recursive: true })
  writeFileSync(join(state, stateFiles.identity), JSON.stringify(identity), { mode: 0o600 })
  const { status, of } = await diagnosed({ NODE_EXTRA_CA_CERTS: '/is/not/there.pem' })
  expect(status).toBe(1)
  expect(of('device')).toMatchObject([{ verdict: 'failed', message: 'The device manager does not run.' }])
  expect(of('folders')).toMatchObject([{ message: '1 can be used' }])
  expect(of('folder')).toMatchObject([
    {
      verdict: 'failed',
      message: 'The folder fs_2 (/fs_2) cannot be used: missing.',
      fix: expect.stringContaining('fs_2'),
    },
  ])
  expect(of('versions')).toMatchObject([{ message: `The server is of release 9.9.9, this svc of ${version}.` }])
  expect(of('certs')).toMatchObject([{ verdict: 'warning' }])
  expect(of('disk')).toHaveLength(1)
})

const launchd = { installed: true, startedByService: true }
const byHand = { installed: false, startedByService: false }
test.each([
  ['of a service that macOS answers', launchd, { manager: 'Aqua', trusts: true }, 'ok', null],
  ['started by hand', byHand, { manager: 'Aqua', trusts: true }, 'warning', 'svc device install-service'],
  ['whose session has ended', byHand, { manager: null, trusts: false }, 'failed', 'svc device install-service'],
  ['that is not answered', launchd, { manager: 'Background', trusts: false }, 'failed', 'svc device restart'],
  ['of which that is not known', launchd, { manager: 'Aqua', trusts: null }, null, null],
  ['of an older release, or on Linux', byHand, undefined, null, null],
] as const)(
  'on macOS a device manager %s is told by its word on certificates',
  async (_, service, loginSession, verdict, fix) => {
    const server = await signedIn({ '/api/v1/workspaces': workspace, '/api/auth/me': me(version) })
    const state = join(home.dir, 'state')
    mkdirSync(state, { recursive: true })
    writeFileSync(join(state, stateFiles.identity), JSON.stringify({ ...identity, server }), { mode: 0o600 })
    const status = {
      pid: process.pid,
      version,
      startedAt: 1,
      publicId: 'dvc_1',
      deviceId: identity.deviceId,
      displayName: 'laptop',
      server,
      link: { state: 'connected', since: 1, lastError: null },
      capacity: 1,
      accepting: true,
      reason: null,
      runs: [],
      readiness: null,
      spool: { rows: 0, bytes: 0 },
      isolation: { isolation: 'off', level: 'off', problem: null, doors: [] },
      service,
      loginSession,
    }
    const daemon = createServer((socket) =>
      socket.once('data', () => socket.end(`${JSON.stringify({ ok: true, value: status })}\n`)),
    )
    await once(daemon.listen(join(state, stateFiles.socket)), 'listening')
    try {
      const { of, status: code } = await diagnosed({ NODE_EXTRA_CA_CERTS: '' })
      expect(of('certs')).toMatchObject(verdict === null ? [] : [{ verdict, fix }])
      if (verdict === 'failed') expect(code).toBe(1)
    } finally {
      daemon.close()
    }
  },
)
