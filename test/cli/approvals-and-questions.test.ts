import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { refusal, type Answer, type Received } from './api-server.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

let home: ServedHome
const ids = { approval: 'apr_6tG4kV2zMxF8pL0w', question: 'qst_1rT5nY9bJcQ3dH7s', secret: 'sec_7kP2nV5xQbD8rM1c' }

beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

/** As a person: the login is kept in the home. */
async function signedIn(answer: (request: Received) => Answer): Promise<void> {
  await home.serve(answer)
  mkdirSync(join(home.dir, 'config'))
  const login = { server: home.api.url, token: 'svc_pat_x', workspace: null }
  writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify(login))
}

test('approvals are listed when they are open, unless another status is asked for', async () => {
  await signedIn(() => ({ body: { object: 'list', data: [] } }))
  await home.svc(['approval', 'list'])
  await home.svc(['approval', 'list', '--status', 'all', '--task', 'MAI-1', '--trigger', 'tool_permission'])
  expect(home.api.received.map(({ query }) => Object.fromEntries(query))).toEqual([
    { status: 'open' },
    { status: 'all', taskId: 'MAI-1', trigger: 'tool_permission' },
  ])
  expect((await home.svc(['approval', 'list', '--status', 'closed'])).status).toBe(2)
})

test('an approval is resolved with a note, and a refusal is passed on', async () => {
  await signedIn(({ path }) => (path.endsWith('/reject') ? refusal(403, 'approval_assignee_mismatch') : { body: {} }))
  await home.svc(['approval', 'approve', ids.approval, '--note', 'go', '--scope', 'always'])
  expect(home.api.received[0]).toMatchObject({
    path: `/api/v1/approvals/${ids.approval}/approve`,
    body: { reason: 'go', appliedScope: 'always' },
  })
  expect(home.api.received[0]!.headers['idempotency-key']).toMatch(/./)
  const refused = await home.svc(['approval', 'reject', ids.approval])
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('approval_assignee_mismatch')])
  await home.svc(['approval', 'assign', ids.approval, '--to', 'usr_7aZ1qX5vNmG9kT3r', '--reason', 'on call'])
  expect(home.api.received.at(-1)!.body).toEqual({ assignedTo: { id: 'usr_7aZ1qX5vNmG9kT3r' }, reason: 'on call' })
})

test('an agent requests an approval for its task or another one', async () => {
  const env = await home.inRun(() => ({ status: 201, body: { approval: { id: ids.approval }, sentinel: 's' } }))
  const line = ['approval', 'request', '--type', 'deploy', '--description', 'Deploy 17?']
  const end = await home.svc(line, { env })
  expect(JSON.parse(end.stdout)).toEqual({ approval: { id: ids.approval }, sentinel: 's' })
  await home.svc(['approval', 'request', 'MAI-3', ...line.slice(2)], { env })
  const body = { prompt: 'Deploy 17?', gatedThing: { name: 'deploy' } }
  expect(home.api.received.map((call) => call.body)).toEqual([body, { ...body, taskId: 'MAI-3' }])
})

test('an agent asks a question, or for a secret', async () => {
  const env = await home.inRun(() => ({ status: 201, body: { question: { id: ids.question }, sentinel: 's' } }))
  await home.svc(['question', 'ask', 'Which one?'], { env })
  const line = ['question', 'ask', 'To push the tag', '--secret-name', 'key', '--provider', 'github', '--env', 'KEY']
  await home.svc(line, { env })
  expect(home.api.received.map((call) => call.body)).toEqual([
    { prompt: 'Which one?', answerMode: 'free_text' },
    {
      prompt: 'To push the tag',
      answerMode: 'secret_input',
      secretRequest: { name: 'key', provider: 'github', envVarName: 'KEY', reason: 'To push the tag' },
    },
  ])
})

test('an agent asks with options, by key or by key and label', async () => {
  const env = await home.inRun(() => ({ status: 201, body: { question: {}, sentinel: null } }))
  const ask = (...more: string[]) => home.svc(['question', 'ask', 'Where?', ...more], { env })
  await ask('--option', 'eu=Europe', '--option', 'us')
  await ask('--option', 'a=b=c', '--option', 'd', '--several')
  const [one, several] = home.api.received.map((call) => call.body)
  expect(one).toEqual({
    prompt: 'Where?',
    answerMode: 'single_select',
    options: [
      { key: 'eu', label: 'Europe' },
      { key: 'us', label: 'us' },
    ],
  })
  expect(several).toMatchObject({ answerMode: 'multi_select', options: [{ key: 'a', label: 'b=c' }, { key: 'd' }] })
  expect((await ask('--several')).status).toBe(2)
  const secret = ['--secret-name', 'k', '--provider', 'p', '--env', 'K']
  expect((await ask('--option', 'a', ...secret)).status).toBe(2)
  expect(home.api.received).toHaveLength(2)
})

describe('an agent that waits for the answer', () => {
  const waiting = (reply: (asked: number) => Record<string, unknown>) => {
    let asked = 0
    return home.inRun(({ method }) =>
      method === 'POST'
        ? { status: 201, body: { question: { id: ids.question, status: 'open' }, sentinel: null } }
        : { body: { id: ids.question, ...reply(asked++) } },
    )
  }
  const open = { status: 'open' }

  test('has it printed when it is there', async () => {
    const answered = { status: 'resolved', answer: { text: 'red' }, answeredBy: { type: 'user' } }
    const env = await waiting((asked) => (asked < 2 ? open : answered))
    const end = await home.svc(['question', 'ask', 'Which one?', '--wait'], { env })
    expect([end.status, JSON.parse(end.stdout)]).toEqual([0, { id: ids.question, ...answered }])
    const [asked, ...reads] = home.api.received
    expect(asked!.body).toEqual({ prompt: 'Which one?', answerMode: 'free_text', waitMs: 300_000 })
    expect(reads).toHaveLength(3)
  })

  test('hears that nobody answered', async () => {
    const closed = { status: 'resolved', answer: { text: '[system:wait_timeout]' }, answeredBy: null }
    const env = await waiting((asked) => (asked < 1 ? open : closed))
    const end = await home.svc(['question', 'ask', 'Which one?', '--wait', '1000'], { env })
    expect([end.status, JSON.parse(end.stdout).status]).toEqual([5, 'resolved'])
    expect(end.stderr).toContain('nobody answered in time')
  })

  test('cannot wait for a secret', async () => {
    const env = await waiting(() => open)
    const line = ['question', 'ask', 'x', '--secret-name', 'k', '--provider', 'p', '--env', 'K', '--wait']
    expect((await home.svc(line, { env })).status).toBe(2)
    expect(home.api.received).toEqual([])
  })
})

test('a person answers with a text or with keys', async () => {
  await signedIn(() => ({ body: { id: ids.question, status: 'open', answerMode: 'multi_select' } }))
  await home.svc(['question', 'answer', ids.question, 'the left one'])
  await home.svc(['question', 'answer', ids.question, '--select', 'a', '--select', 'b'])
  const answers = home.api.received.filter((call) => call.method === 'POST').map((call) => call.body)
  expect(answers).toEqual([
    { answer: { text: 'the left one', selected: null } },
    { answer: { text: null, selected: ['a', 'b'] } },
  ])
  expect((await home.svc(['question', 'answer', ids.question])).status).toBe(2)
})

test('a text that is the key of an option, or reads as one option alone, chooses it; any other is a text', async () => {
  const options = [
    { key: 'eu', label: 'Europe' },
    { key: 'us', label: 'eu' },
  ]
  await signedIn(() => ({ body: { id: ids.question, status: 'open', answerMode: 'single_select', options } }))
  const args = [['eu'], [' us\n'], ['europe '], ['EU'], ['north'], ['eu', '--select', 'us'], ['--select', 'Europe']]
  for (const more of args) await home.svc(['question', 'answer', ids.question, ...more])
  const answers = home.api.received.filter((call) => call.method === 'POST').map((call) => call.body)
  expect(answers).toEqual([
    { answer: { text: null, selected: ['eu'] } },
    { answer: { text: null, selected: ['us'] } },
    { answer: { text: null, selected: ['eu'] } },
    { answer: { text: 'EU', selected: null } },
    { answer: { text: 'north', selected: null } },
    { answer: { text: 'eu', selected: ['us'] } },
    { answer: { text: null, selected: ['eu'] } },
  ])
})

test('the hosts of a secret are named by repeated flags, and cleared by `none`', async () => {
  await signedIn(() => ({ body: { id: ids.secret } }))
  const bodyOf = async (...flags: string[]) => {
    expect(await home.svc(['secret', 'update', ids.secret, ...flags])).toMatchObject({ status: 0 })
    return home.api.received.at(-1)
  }
  const path = `/api/v1/secrets/${ids.secret}`
  const two = await bodyOf('--broker-hosts', 'api.example.com', '--broker-hosts', 'b.test:8443')
  expect(two).toMatchObject({ method: 'PATCH', path, body: { brokerHosts: ['api.example.com', 'b.test:8443'] } })
  expect((await bodyOf('--broker-hosts', 'none'))?.body).toEqual({ brokerHosts: null })
  expect((await bodyOf('--cloud-plain', 'true'))?.body).toEqual({ cloudPlain: true })
})

test('a secret is given on standard input alone, to the route for secrets', async () => {
  await signedIn(() => ({ body: { id: ids.question, status: 'open', answerMode: 'secret_input' } }))
  const refused = await home.svc(['question', 'answer', ids.question, 'my-secret-value'])
  expect([refused.status, refused.stderr.includes('my-secret-value')]).toEqual([2, false])
  expect(home.api.received.filter((call) => call.method === 'POST')).toEqual([])
  expect((await home.svc(['question', 'answer', ids.question], { input: 'the value\n' })).status).toBe(0)
  const sent = home.api.received.at(-1)!
  expect(sent).toMatchObject({ path: `/api/v1/questions/${ids.question}/secret`, body: { value: 'the value' } })
  expect(sent.headers['idempotency-key']).toBeUndefined()
  expect((await home.svc(['question', 'answer', ids.question], { input: '' })).status).toBe(2)
})

test('in a run nobody answers, and nothing is asked of the server', async () => {
  const env = await home.inRun(() => ({ body: {} }))
  const end = await home.svc(['question', 'answer', ids.question, 'yes'], { env })
  expect(end.status).toBe(1)
  expect(JSON.parse(end.stderr)).toMatchObject({ error: { code: 'cli.agent_cannot_answer_question' } })
  expect(home.api.received).toEqual([])
})

test('secrets are stored from standard input, and revealed as a text', async () => {
  await signedIn(({ path }) => ({ body: path.endsWith('/reveal') ? { id: ids.secret, value: 'two\nlines' } : {} }))
  await home.svc(['secret', 'create', '--name', 'key', '--env', 'KEY', '--agent', '@b'], { input: 'two\nlines\n' })
  expect(home.api.received[0]).toMatchObject({
    path: '/api/v1/secrets',
    body: { name: 'key', envVarName: 'KEY', agentId: '@b', value: 'two\nlines' },
  })
  expect((await home.svc(['secret', 'create', '--name', 'key', '--value', 'x'], { input: 'y' })).status).toBe(2)
  expect((await home.svc(['secret', 'reveal', ids.secret])).stdout).toBe('two\nlines\n')
  await home.svc(['secret', 'grant', ids.secret, '--agent', '@b'])
  await home.svc(['secret', 'revoke-grant', ids.secret, '--agent', '@b'])
  await home.svc(['secret', 'delete', ids.secret])
  expect(home.api.received.slice(-3).map(({ method, path }) => `${method} ${path}`)).toEqual([
    `POST /api/v1/secrets/${ids.secret}/grants`,
    `DELETE /api/v1/secrets/${ids.secret}/grants/%40b`,
    `DELETE /api/v1/secrets/${ids.secret}`,
  ])
})
