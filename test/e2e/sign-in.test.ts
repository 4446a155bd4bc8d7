import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import { startApi, type Answer, type ApiServer } from '../cli/api-server.ts'
import { onTerminal } from '../cli/on-terminal.ts'
import { makeHome, type Home } from '../cli/run-svc.ts'
import { Browser, confirmCode, useLink } from '../kit/browser.ts'
import { programFile } from '../kit/program-file.ts'
import { waitFor } from '../kit/programs.ts'
import { TestServer } from '../kit/system-server.ts'

// svc on a terminal, the server and its operator's commands, each a real process.

const serverProgram = programFile('control-plane')
let root: string
let server: TestServer
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'svc-sign-in-'))
  server = new TestServer({ name: 'one', root, env: {}, databaseUrl: null, tokenOf: null })
  await server.start()
})
afterAll(async () => {
  await server?.program.end()
  rmSync(root, { recursive: true, force: true })
})

function newHome({ onTestFinished }: TestContext): Home {
  const home = makeHome()
  onTestFinished(() => home.remove())
  return home
}

async function operator(...line: string[]) {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', serverProgram, ...line, '--data-dir', server.dataDir],
    { env: { PATH: process.env['PATH'] ?? '', HOME: root } },
  )
  expect(stdout.trim().split('\n')).toHaveLength(1)
  return JSON.parse(stdout) as Record<string, string>
}

let browser: Promise<Browser> | null = null
/** A browser signed in by a link of the operator, which all tests share: the operator's command is a program to start. */
const signedIn = (): Promise<Browser> => (browser ??= signIn())

async function signIn(): Promise<Browser> {
  const link = await operator('login-link', '--email', 'owner@localhost')
  expect(link).toEqual({
    userId: expect.stringMatching(/^usr_/),
    workspaceId: expect.any(String),
    url: expect.stringContaining(`${server.url}/sign-in/link?token=`),
    expiresAt: expect.any(String),
  })
  const browser = new Browser(server)
  expect((await useLink(browser, link['url']!)).status).toBe(303)
  return browser
}

/** Ended with the test, also when it fails: a login that nobody approves would wait for a quarter of an hour. */
function inTerminal({ onTestFinished }: TestContext, home: Home, line: readonly string[]) {
  const terminal = onTerminal(home, line)
  onTestFinished(() => terminal.kill())
  return terminal
}

// At once: they mostly wait for the times at which svc asks.
describe.concurrent('svc login', () => {
  test('on a terminal shows a code, waits for the person, and keeps a token that can be listed and revoked', async (context) => {
    const home = newHome(context)
    const { shown, ended } = inTerminal(context, home, ['login', '--server', server.url])
    const address = await waitFor(
      () => /http\S+\/device\?user_code=[A-Z-]{9}/.exec(shown.text)?.[0],
      'svc shows the address',
      { about: () => shown.text },
    )
    expect(shown.text).toContain(`${server.url}/device`)
    await confirmCode(await signedIn(), address)
    expect(await ended).toBe(0)
    const file = join(home.env['SVC_CONFIG_DIR']!, 'login.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const { token } = JSON.parse(readFileSync(file, 'utf8')) as { token: string }
    expect(token).toMatch(/^svc_pat_/)
    expect(shown.text).not.toContain(token)
    const list = async () => {
      const { stdout } = await home.svc(['auth', 'list'])
      return (JSON.parse(stdout) as { data: { id: string; name: string; isCurrent: boolean }[] }).data
    }
    const own = (await list()).find(({ isCurrent }) => isCurrent)!
    expect(own.name).toMatch(/^svc login on /)
    const { tokenId } = await operator('token', 'create', '--email', 'owner@localhost', '--name', 'spare')
    expect((await list()).map(({ id }) => id)).toContain(tokenId)
    expect(JSON.parse((await home.svc(['auth', 'revoke', tokenId!])).stdout)).toEqual({ id: tokenId, revoked: true })
    expect((await list()).map(({ id }) => id)).not.toContain(tokenId)
    const all = await home.svc(['auth', 'list', '--all', '--output', 'table'])
    expect(all.stdout).toContain('owner@localhost')
    expect((await home.svc(['auth', 'revoke', own.id])).status).toBe(0)
    expect((await home.svc(['auth', 'list'])).status).toBe(4)
  })

  test('with --browser opens the page, also without a terminal', async (context) => {
    const home = newHome(context)
    const opened = join(home.dir, 'opened')
    for (const name of ['xdg-open', 'open']) {
      const program = join(home.dir, name)
      writeFileSync(program, `#!/bin/sh\nprintf '%s' "$1" > "${opened}.new" && mv "${opened}.new" "${opened}"\n`)
      chmodSync(program, 0o755)
    }
    const running = home.start(['login', '--server', server.url, '--browser'], {
      env: { PATH: `${home.dir}:${process.env['PATH']}` },
    })
    context.onTestFinished(() => void running.child.kill('SIGKILL'))
    const address = await waitFor(() => readFileSync(opened, 'utf8'), 'the browser is opened')
    expect(address).toMatch(/\/device\?user_code=[A-Z-]{9}$/)
    await confirmCode(await signedIn(), address)
    const end = await running.finished
    expect(end).toMatchObject({ status: 0 })
    expect(JSON.parse(end.stdout)).toMatchObject({ server: server.url, role: 'owner' })
  })

  test('without a terminal and --browser asks for a token', async (context) => {
    const home = newHome(context)
    const { status, stderr } = await home.svc(['login', '--server', server.url])
    expect([status, stderr.includes('No token was given')]).toEqual([2, true])
  })
})

test.concurrent('an operator’s link leads to the public address, and is for members', async () => {
  const publicUrl = 'https://svc.example.com'
  const env = { PATH: process.env['PATH'] ?? '', HOME: root, SVC_PUBLIC_URL: publicUrl, SVC_DATA_DIR: server.dataDir }
  const run = (email: string) =>
    promisify(execFile)(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', serverProgram, 'login-link', '--email', email],
      { env },
    )
  expect((await run('owner@localhost')).stdout).toContain(`"url":"${publicUrl}/sign-in/link?token=`)
  await expect(run('stranger@example.com')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Nobody'),
  })
})

// At once: they mostly wait for the times at which svc asks.
describe.concurrent('svc login at servers that answer otherwise', () => {
  const grant = (url: string) => ({
    device_code: 'the-device-code',
    user_code: 'BBBB-CCCC',
    verification_uri: `${url}/device`,
    verification_uri_complete: `${url}/device?user_code=BBBB-CCCC`,
    expires_in: 60,
    interval: 1,
  })
  const oauth = (error: string, status = 400): Answer => ({
    status,
    body: { error, error_description: `It is ${error}.` },
  })

  async function loginAt(tokens: readonly Answer[], first?: (url: string) => Answer) {
    const home = makeHome()
    const api: ApiServer = await startApi((request, before) => {
      if (request.path === '/api/auth/token') return tokens[Math.min(before, tokens.length - 1)]!
      return first?.(api.url) ?? { body: grant(api.url) }
    })
    try {
      // No program that opens a browser is found there; svc goes on without.
      const end = await home.svc(['login', '--server', api.url, '--browser'], { env: { PATH: home.dir } })
      const polls = api.received.filter(({ path }) => path === '/api/auth/token')
      return { ...end, polls, begun: api.received[0]! }
    } finally {
      await api.close()
      home.remove()
    }
  }
  const codeOf = (stderr: string) => {
    const line = stderr.split('\n').find((text) => text.startsWith('{'))!
    return (JSON.parse(line) as { error: { code: string } }).error.code
  }

  test('a refusal ends it at once; what passes is waited for', async () => {
    const broken: Answer = (response) => void response.destroy()
    const end = await loginAt([oauth('authorization_pending'), { status: 502 }, broken, oauth('access_denied')])
    expect([end.status, codeOf(end.stderr)]).toEqual([4, 'cli.sign_in_refused'])
    expect(end.polls).toHaveLength(4)
    expect(end.stderr).toContain('no browser could be opened')
    expect(end.begun.headers.authorization).toBeUndefined()
    expect(Object.fromEntries(end.polls[0]!.body as URLSearchParams)).toEqual({
      client_id: 'svc',
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: 'the-device-code',
    })
  })

  test.each<[string, Answer, number, string]>([
    ['the code is too old', oauth('expired_token'), 4, 'cli.sign_in_expired'],
    ['the code is not known', oauth('invalid_grant'), 1, 'cli.sign_in_invalid_grant'],
    ['the token is none', { body: { hello: 'world' } }, 3, 'cli.not_our_server'],
  ])('%s', async (_, answer, status, code) => {
    const end = await loginAt([answer])
    expect([end.status, codeOf(end.stderr)]).toEqual([status, code])
  })

  test.each<[string, (url: string) => Answer, number, string]>([
    ['offers no device flow', () => ({ status: 404, body: {} }), 1, 'cli.no_device_flow'],
    ['has too many sign-ins', () => oauth('slow_down', 429), 1, 'cli.sign_in_slow_down'],
    ['is something else', () => ({ body: { hello: 'world' } }), 3, 'cli.not_our_server'],
    [
      'would paint on the terminal',
      (url) => ({ body: { ...grant(url), user_code: '\u001b[2J' } }),
      3,
      'cli.not_our_server',
    ],
    [
      'would open a program',
      (url) => ({ body: { ...grant(url), verification_uri_complete: 'file:///etc/passwd' } }),
      3,
      'cli.not_our_server',
    ],
  ])('a server that %s', async (_, first, status, code) => {
    const end = await loginAt([oauth('access_denied')], first)
    expect([end.status, codeOf(end.stderr)]).toEqual([status, code])
    expect(end.polls).toEqual([])
  })
})
