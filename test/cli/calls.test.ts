import { closeSync, existsSync, openSync, statSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { refusal, startApi } from './api-server.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

let home: ServedHome

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

test('a call carries the token, prints the reply as one line of JSON, and nothing else', async () => {
  const env = await home.inRun(() => ({ body: { id: runId, status: 'running' } }))
  const end = await home.svc(['run', 'get', 'current', '--expand', 'latestEvents', '--workspace', 'w-1'], { env })
  expect(end).toEqual({ status: 0, stdout: `{"id":"${runId}","status":"running"}\n`, stderr: '' })
  const [call] = home.api.received
  expect(call).toMatchObject({ method: 'GET', path: `/api/v1/runs/${runId}` })
  expect(call!.query.getAll('expand')).toEqual(['latestEvents'])
  expect(call!.headers).toMatchObject({
    authorization: 'Bearer the.run.token',
    'svc-workspace-id': 'w-1',
    'user-agent': expect.stringMatching(/^svc\/\d/),
  })
})

test('several runs with what only one run gives are read one by one, with null for those that are unknown', async () => {
  const other = 'run_0000000000000000'
  const env = await home.inRun(({ path }) =>
    path.endsWith(runId) ? { body: { id: runId } } : refusal(404, 'resource_not_found'),
  )
  const end = await home.svc(['run', 'get', 'current', other, '--expand', 'latestEvents'], { env })
  expect(end).toEqual({
    status: 1,
    stdout: `{"object":"list","data":[{"id":"${runId}"},null]}\n`,
    stderr: `svc: not found: ${other}\n`,
  })
  const asked = home.api.received.map(({ path, query }) => [path, query.getAll('expand')])
  expect(asked).toEqual([runId, other].map((id) => [`/api/v1/runs/${id}`, ['latestEvents']]))
  await home.svc(['run', 'get', 'current', other], { env })
  expect(home.api.received.at(-1)).toMatchObject({ path: '/api/v1/runs' })
})

test("a refusal is the server's envelope on standard error, and status 1; on a table it is a sentence", async () => {
  const env = await home.inRun(() => refusal(409, 'run.not_cancellable', { remediation: 'fix_it' }))
  const end = await home.svc(['run', 'retry', 'current'], { env })
  expect(end).toMatchObject({ status: 1, stdout: '' })
  expect(JSON.parse(end.stderr)).toMatchObject({ error: { code: 'run.not_cancellable', requestId: 'req_1' } })
  const told = await home.svc(['run', 'retry', 'current', '--output', 'table'], { env })
  expect(told.stderr).toBe('svc: It is run.not_cancellable.\n  fix: fix_it\n  (run.not_cancellable, req_1)\n')
})

test('an older route says its error as a plain text, which is passed on', async () => {
  const env = await home.inRun(() => ({ status: 404, body: { error: 'Device not found' } }))
  const line = ['device', 'remove', '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b']
  expect(await home.svc(line, { env })).toEqual({ status: 1, stdout: '', stderr: '{"error":"Device not found"}\n' })
})

test('status 4 without a login, and when the token is not taken', async () => {
  const none = await home.svc(['workspace', 'get'])
  expect(none.status).toBe(4)
  expect(none.stderr).toContain('svc login')
  const env = await home.inRun(() => refusal(401, 'auth_revoked'))
  expect((await home.svc(['workspace', 'get'], { env })).status).toBe(4)
})

test('a login that cannot be read or kept is no fault of svc, and the file is named', async () => {
  mkdirSync(join(home.dir, 'config/login.json'), { recursive: true })
  const read = await home.svc(['workspace', 'get'])
  expect([read.status, JSON.parse(read.stderr).error.code]).toEqual([4, 'cli.login_unreadable'])
  await home.serve(({ path }) => ({
    body: path.endsWith('/user/workspaces') ? { data: [] } : { id: 'w', slug: 's', name: 'n' },
  }))
  const kept = await home.svc(['login', '--server', home.api.url, '--token', '-'], { input: 'svc_pat_x' })
  expect([kept.status, JSON.parse(kept.stderr).error.code]).toEqual([1, 'cli.login_not_kept'])
  for (const { stderr } of [read, kept]) expect(stderr).toContain(join(home.dir, 'config/login.json'))
})

test('a reference that is empty, or a step of a path, is refused before another route is called', async () => {
  const env = await home.inRun(() => ({ body: {} }))
  for (const reference of ['', '.', '..']) {
    for (const line of [
      ['agent', 'get', reference],
      ['run', 'get', reference],
      ['run', 'events', reference, '--follow'],
      ['run', 'create', '--agent', reference, '--prompt', 'x'],
    ]) {
      expect((await home.svc(line, { env })).status, line.join(' ')).toBe(2)
    }
  }
  expect(home.api.received).toEqual([])
})

test('a token that no header can hold is said, and is no defect of svc', async () => {
  const env = await home.inRun(() => ({ body: {} }))
  const end = await home.svc(['agent', 'list'], { env: { ...env, SVC_TOKEN: 'a\nb' } })
  expect(end.status).toBe(2)
  expect(end.stderr).toContain('SVC_TOKEN')
})

test('a result larger than what a pipe takes at once is printed whole', async () => {
  const prompt = 'x'.repeat(4 * 1024 * 1024)
  const env = await home.inRun(() => ({ body: { prompt } }))
  const end = await home.svc(['run', 'context', 'current'], { env, isOwnProcess: true })
  expect([end.status, end.stdout.length, end.stderr]).toEqual([0, `{"prompt":"${prompt}"}\n`.length, ''])
})

test.runIf(existsSync('/dev/full'))('a result that could not be written is a failure', async () => {
  const env = await home.inRun(() => ({ body: { id: runId } }))
  const full = openSync('/dev/full', 'w')
  const end = await home.svc(['run', 'get', 'current'], { env, stdout: full })
  closeSync(full)
  expect([end.status, JSON.parse(end.stderr).error.code]).toEqual([1, 'cli.output_lost'])
})

test('on a table, a token that is not taken is followed by what to type, but not within a run', async () => {
  const env = await home.inRun(() => refusal(401, 'auth_invalid', { remediation: 'sign_in' }))
  const line = ['workspace', 'get', '--output', 'table']
  expect((await home.svc(line, { env })).stderr).toContain('Sign in again.')
  mkdirSync(join(home.dir, 'config'))
  writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server: home.api.url, token: 'svc_pat_x' }))
  expect((await home.svc(line)).stderr).toContain('Type `svc login` to sign in again.')
})

test('the next page of a list is named by the flag that reads it', async () => {
  const env = await home.inRun(() => ({
    body: { object: 'list', data: [{ id: 'a' }], hasMore: true, nextCursor: 'n1' },
  }))
  const list = async (line: string[]) => (await home.svc([...line, '--output', 'table'], { env })).stderr
  expect(await list(['run', 'list'])).toBe('svc: there are more (--after n1, or --all)\n')
  expect(await list(['task', 'list'])).toBe('svc: there are more (--after n1, or --all)\n')
  expect(await list(['conversation', 'message', 'list', 'con_1'])).toContain('(--starting-after n1, or --all)')
  expect(await list(['task', 'list', '--ending-before', 'tsk_9wE3mU7xKfA1gN5z'])).toContain('(--ending-before n1)')
})

test('status 3 names the server that does not answer, and what to type', async () => {
  await home.serve(() => ({ body: {} }))
  const { url } = home.api
  mkdirSync(join(home.dir, 'config'))
  writeFileSync(
    join(home.dir, 'config/login.json'),
    JSON.stringify({ server: url, token: 'svc_pat_x', workspace: null }),
  )
  await home.api.close()
  const end = await home.svc(['workspace', 'get'])
  expect(end.status).toBe(3)
  expect(JSON.parse(end.stderr)).toMatchObject({ error: { code: 'cli.server_refuses' } })
  expect(end.stderr).toContain(url)
  expect(end.stderr).toContain('svc-server start')
})

test('a write that met a server in trouble is sent again with the same key', async () => {
  const env = await home.inRun((_, before) =>
    before === 0 ? refusal(503, 'transient_conflict') : { body: { kind: 'queued', runPublicId: runId } },
  )
  const end = await home.svc(['agent', 'run', '@b', '--prompt', '- go'], { env })
  expect(end).toMatchObject({ status: 0, stdout: `{"kind":"queued","runPublicId":"${runId}"}\n` })
  const keys = home.api.received.map((call) => call.headers['idempotency-key'])
  expect(keys).toHaveLength(2)
  expect(keys[0]).toBe(keys[1])
  expect(keys[0]).toMatch(/^svc-\w+-\w+-\w+-\w+$/)
  expect(home.api.received[1]).toMatchObject({ path: '/api/v1/agents/%40b/runs', body: { prompt: '- go' } })
})

test('several runs are read by one batch; what is missing is told, and the status says so', async () => {
  const env = await home.inRun(() => ({ body: { object: 'list', data: [{ id: runId }, null] } }))
  const end = await home.svc(['run', 'get', 'current', 'run_0000000000000000'], { env })
  expect(end).toMatchObject({ status: 1, stderr: 'svc: not found: run_0000000000000000\n' })
  expect(home.api.received).toHaveLength(1)
  expect(home.api.received[0]!.path).toBe('/api/v1/runs')
  expect(home.api.received[0]!.query.get('ids')).toBe(`${runId},run_0000000000000000`)
})

test('a run that waits for a person is cancelled only with --force', async () => {
  const waitingOn = { kind: 'approval', id: 'apr_1', label: 'Deploy?', since: '2026-03-01T09:30:00.000Z' }
  const env = await home.inRun(({ method }) => ({
    body: { id: runId, waitingOn: method === 'GET' ? waitingOn : null },
  }))
  const refused = await home.svc(['run', 'cancel', 'current'], { env })
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(JSON.parse(refused.stderr)).toMatchObject({
    error: { code: 'cli.run_waits_for_person', details: { waitingOn } },
  })
  expect(home.api.received.map((call) => call.method)).toEqual(['GET'])
  expect((await home.svc(['run', 'cancel', 'current', '--force', '--reason', 'no'], { env })).status).toBe(0)
  expect(home.api.received.at(-1)).toMatchObject({ method: 'POST', body: { reason: 'no' } })
})

test('the output of a run comes from a file, from standard input or from the line, and must be JSON', async () => {
  const env = await home.inRun(() => ({ body: { runId, recorded: true } }))
  writeFileSync(join(home.dir, 'out.json'), '{"n":1}')
  const line = ['run', 'output', '--schema', 's']
  await home.svc([...line, '--file', 'out.json'], { env, cwd: home.dir })
  await home.svc([...line, '--file', '-'], { env, input: '[2]' })
  await home.svc([...line, '--data', 'null'], { env })
  expect(home.api.received.map((call) => call.body)).toEqual(
    [1, [2], null].map((data) => ({ schema: 's', data: data === 1 ? { n: 1 } : data })),
  )
  expect((await home.svc([...line, '--file', '-'], { env, input: '{' })).status).toBe(2)
  expect((await home.svc(line, { env })).status).toBe(2)
  expect(home.api.received).toHaveLength(3)
})

test('agent identity prints the text alone, its hash on standard error', async () => {
  const env = await home.inRun(() => ({ body: { agentMd: '# Me', agentMdHash: 'abc', rules: [] } }))
  expect(await home.svc(['agent', 'identity'], { env })).toEqual({
    status: 0,
    stdout: '# Me\n',
    stderr: 'agentMdHash: abc\n',
  })
  expect(home.api.received[0]!.path).toBe('/api/v1/agents/me/identity')
  const whole = await home.svc(['agent', 'identity', '--output', 'json'], { env })
  expect(JSON.parse(whole.stdout)).toEqual({ agentMd: '# Me', agentMdHash: 'abc', rules: [] })
})

test('api calls any route: fields, a body from a file, headers, pages', async () => {
  const env = await home.inRun(({ path, query }) =>
    path === '/api/v1/runs'
      ? query.get('after') === null
        ? { body: { object: 'list', data: [{ id: 'a' }], hasMore: true, nextCursor: 'c1', cursor: 'c1' } }
        : { body: { object: 'list', data: [{ id: 'b' }], hasMore: false, nextCursor: null, cursor: null } }
      : { body: { ok: true } },
  )
  const paged = await home.svc(['api', '/runs', '--paginate'], { env })
  expect(JSON.parse(paged.stdout)).toEqual({
    object: 'list',
    data: [{ id: 'a' }, { id: 'b' }],
    hasMore: false,
    nextCursor: null,
    cursor: null,
  })
  await home.svc(['api', '-X', 'get', '/runs', '-F', 'status[]=running', '-F', 'after=c1'], { env })
  expect([...home.api.received.at(-1)!.query]).toEqual([
    ['status', 'running'],
    ['after', 'c1'],
  ])
  await home.svc(['api', '/x', '-F', 'n=1', '-f', 's=1', '-F', 'a[b]=true', '-F', 'f=@-', '-H', 'X-Y: z'], {
    env,
    input: 'text',
  })
  expect(home.api.received.at(-1)).toMatchObject({
    method: 'POST',
    path: '/api/v1/x',
    body: { n: 1, s: '1', a: { b: true }, f: 'text' },
    headers: { 'x-y': 'z' },
  })
  await home.svc(['api', 'put', '/api/openapi.json', '--input', '-'], { env, input: '{"q":1}' })
  expect(home.api.received.at(-1)).toMatchObject({ method: 'PUT', path: '/api/openapi.json', body: { q: 1 } })
  const away = await home.svc(['api', 'GET', 'https://elsewhere.example/x'], { env })
  expect(away.status).toBe(2)
})

test('login tries the token, keeps it for this user alone; logout forgets it', async () => {
  await home.serve(({ path, headers }) => {
    if (headers.authorization !== 'Bearer svc_pat_good') return refusal(401, 'auth_invalid')
    return path === '/api/v1/workspaces'
      ? { body: { id: 'w-1', slug: 'main', name: 'Main' } }
      : { body: { object: 'list', data: [{ id: 'w-1', role: 'owner' }] } }
  })
  const file = join(home.dir, 'config/login.json')
  expect((await home.svc(['login', '--server', home.api.url, '--token', '-'], { input: 'svc_pat_bad\n' })).status).toBe(
    4,
  )
  expect(existsSync(file)).toBe(false)
  const end = await home.svc(['login', '--server', `${home.api.url}/api/v1/`, '--token', '-'], {
    input: 'svc_pat_good\n',
  })
  expect(end.status).toBe(0)
  expect(JSON.parse(end.stdout)).toMatchObject({ server: home.api.url, workspace: { slug: 'main' }, role: 'owner' })
  expect(end.stdout + end.stderr).not.toContain('svc_pat_good')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect((await home.svc(['workspace', 'get'])).status).toBe(0)
  expect((await home.svc(['logout'])).status).toBe(0)
  expect((await home.svc(['workspace', 'get'])).status).toBe(4)
  expect(home.api.received.some((call) => call.method !== 'GET')).toBe(false)
})

test('login alone finds the server of this machine and the token of its first person', async () => {
  await home.serve(({ path }) =>
    path === '/api/v1/workspaces'
      ? { body: { id: 'w', slug: 's', name: 'S' } }
      : { body: { object: 'list', data: [] } },
  )
  expect((await home.svc(['login'])).status).toBe(2)
  mkdirSync(join(home.dir, 'data'))
  writeFileSync(join(home.dir, 'data/server.json'), JSON.stringify({ url: home.api.url, pid: 1 }))
  writeFileSync(join(home.dir, 'data/login-token'), 'svc_pat_first\n')
  expect((await home.svc(['login'])).status).toBe(0)
  expect(home.api.received[0]!.headers.authorization).toBe('Bearer svc_pat_first')
  // To another server that token is never sent.
  const other = await startApi(() => ({ body: {} }))
  expect((await home.svc(['login', '--server', other.url])).status).toBe(2)
  expect(other.received).toEqual([])
  await other.close()
})

test('folder add makes a path absolute and leaves a symlink what it is', async () => {
  const sources: unknown[] = []
  const env = await home.inRun(({ method }) =>
    method === 'GET' ? { body: { sources } } : { status: 201, body: { shortId: 'fs_1' } },
  )
  const folder = join(home.dir, 'code')
  mkdirSync(folder)
  symlinkSync(folder, join(home.dir, 'link'))
  expect((await home.svc(['folder', 'add', 'site', 'link'], { env, cwd: home.dir })).stderr).toContain(
    'svc device connect',
  )
  mkdirSync(join(home.dir, 'state'))
  const identity = { publicId: 'dvc_5dF9gJ3kZxC7vB1n', deviceId: 'u', displayName: 'box', server: env['SVC_API_URL'] }
  writeFileSync(join(home.dir, 'state/identity.json'), JSON.stringify(identity))
  const end = await home.svc(['folder', 'add', 'site', 'link'], { env, cwd: home.dir })
  expect(end.status).toBe(0)
  expect(end.stderr).toContain(`leads to ${folder}`)
  expect(home.api.received.at(-1)!.body).toEqual({
    displayName: 'site',
    rootPath: join(home.dir, 'link'),
    deviceId: identity.publicId,
  })
  expect((await home.svc(['folder', 'add', 'x', 'nowhere'], { env, cwd: home.dir })).status).toBe(2)
  expect(
    (await home.svc(['folder', 'add', 'x', 'link', '--device-id', 'dvc_5dF9gJ3kZxC7vB1n'], { env, cwd: home.dir }))
      .status,
  ).toBe(2)
  expect(home.api.received.filter(({ method }) => method === 'POST')).toHaveLength(1)

  // The same directory once more, by another path.
  const of = (shortId: string, deviceId: string, rootPath: string) => ({
    shortId,
    displayName: 'site',
    config: { deviceId, rootPath },
  })
  sources.push(of('fs_1', identity.publicId, join(home.dir, 'link')), of('fs_2', 'dvc_other', folder))
  const again = await home.svc(['folder', 'add', 'site', 'code/'], { env, cwd: home.dir })
  expect(again.status).toBe(0)
  expect(again.stderr).toContain('fs_1 (site) is that folder already')
  expect(again.stderr).not.toContain('fs_2')
})

test('device set finds the connection of this machine by its public id', async () => {
  const deviceId = '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b'
  const devices = [
    { deviceId: 'other', publicId: 'dvc_other' },
    { deviceId, publicId: 'dvc_mine', displayName: 'box' },
  ]
  const env = await home.inRun(({ method }) => ({ body: method === 'GET' ? { devices } : { deviceId } }))
  mkdirSync(join(home.dir, 'state'))
  writeFileSync(
    join(home.dir, 'state/identity.json'),
    JSON.stringify({ publicId: 'dvc_mine', deviceId: 'old', displayName: 'box', server: env['SVC_API_URL'] }),
  )
  expect((await home.svc(['device', 'set', '--max-concurrent', '5'], { env })).status).toBe(0)
  expect((await home.svc(['device', 'set', '--default', '--device', 'box'], { env })).status).toBe(0)
  const writes = home.api.received.filter((call) => call.method === 'PATCH')
  expect(writes.map(({ path, body }) => ({ path, body }))).toEqual([
    { path: `/api/v1/devices/${deviceId}`, body: { maxConcurrentRuns: 5 } },
    { path: `/api/v1/devices/${deviceId}`, body: { isWorkspaceDefault: true } },
  ])
  expect((await home.svc(['device', 'set', '--default', '--device', 'unknown'], { env })).status).toBe(1)
  expect((await home.svc(['device', 'set'], { env })).status).toBe(2)
})

test('a reader that has seen enough is no failure', async () => {
  const env = await home.inRun(() => ({
    body: { object: 'list', data: Array.from({ length: 20_000 }, (_, at) => ({ id: `a${at}` })) },
  }))
  const running = home.start(['agent', 'list'], { env })
  running.child.stdout!.destroy()
  const end = await running.finished
  expect(end).toMatchObject({ status: 0, stderr: '' })
})

test('an old Node is told so before anything else', async () => {
  const versions = `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"22.4.0"}})`
  const end = await home.svc(['version'], { nodeFlags: ['--import', versions] })
  expect(end).toMatchObject({ status: 70, stdout: '' })
  expect(end.stderr).toContain('needs Node 24.12 or newer; this is Node 22.4.0')
})

test('there is a login per workspace: company use changes between them, commands fall back on its workspace', async () => {
  const workspaces: Record<string, { id: string; slug: string; name: string }> = {
    svc_pat_one: { id: 'w-1', slug: 'one', name: 'One' },
    svc_pat_two: { id: 'w-2', slug: 'two', name: 'Two' },
    svc_pat_three: { id: 'w-3', slug: 'other', name: 'Three' },
  }
  let dead = ''
  await home.serve(({ path, headers }) => {
    const token = headers.authorization!.slice('Bearer '.length)
    if (token === dead) return refusal(401, 'auth_invalid')
    const own = workspaces[token]!
    if (path === '/api/v1/user/workspaces') return { body: { object: 'list', data: [{ ...own, role: 'owner' }] } }
    if (path === '/api/v1/workspaces/by-slug/uno') return { status: 308, body: { slug: 'one' } }
    if (path === '/api/v1/workspaces/by-slug/mine-too') return refusal(403, 'not_permitted')
    if (path.startsWith('/api/v1/workspaces/by-slug/')) {
      return path.endsWith(`/${own.slug}`) ? { body: own } : refusal(404, 'resource_not_found')
    }
    return { body: own }
  })
  for (const token of ['svc_pat_one', 'svc_pat_two'])
    await home.svc(['login', '--server', home.api.url, '--token', token])
  const reads = async (line: readonly string[]) => {
    await home.svc(line)
    return home.api.received.at(-1)!.path
  }
  expect(await reads(['workspace', 'get'])).toBe('/api/v1/workspaces/w-2')
  expect((await home.svc(['company', 'use', 'one'])).status).toBe(0)
  expect(await reads(['workspace', 'get'])).toBe('/api/v1/workspaces/w-1')
  expect(await reads(['workspace', 'get', '--workspace', 'w-9'])).toBe('/api/v1/workspaces/w-9')
  expect((await home.svc(['company', 'use', 'uno'])).status).toBe(0)
  expect((await home.svc(['company', 'use', 'three'])).status).toBe(1)
  expect((await home.svc(['company', 'use', 'mine-too'])).stderr).toContain('cli.no_login_there')
  expect((await home.svc(['company', 'use', 'two'])).status).toBe(0)
  expect(await reads(['workspace', 'get'])).toBe('/api/v1/workspaces/w-2')
  // The login that is stored for the named workspace is used for one call.
  expect(await reads(['workspace', 'get', '--workspace', 'w-1'])).toBe('/api/v1/workspaces/w-1')
  expect(home.api.received.at(-1)!.headers.authorization).toBe('Bearer svc_pat_one')
  expect(await reads(['workspace', 'get'])).toBe('/api/v1/workspaces/w-2')
  // A slug that was renamed since, of a workspace for which the login in use is not.
  workspaces['svc_pat_one']!.slug = 'first'
  expect((await home.svc(['company', 'use', 'first'])).status).toBe(0)
  expect(await reads(['workspace', 'get'])).toBe('/api/v1/workspaces/w-1')
  // Nor does a login in use that is dead keep from another one.
  dead = 'svc_pat_one'
  expect((await home.svc(['company', 'use', 'nowhere'])).stderr).toContain('auth_invalid')
  expect((await home.svc(['company', 'use', 'two'])).status).toBe(0)
  workspaces['svc_pat_two']!.slug = 'second'
  await home.svc(['login', '--server', home.api.url, '--token', 'svc_pat_three'])
  dead = 'svc_pat_three'
  expect((await home.svc(['company', 'use', 'second'])).status).toBe(0)
  expect(await reads(['workspace', 'get'])).toBe('/api/v1/workspaces/w-2')
})
