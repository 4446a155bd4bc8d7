import { makeWorkflow, settled } from './workflows-kit.ts'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findDetails } from '../../../control-plane/resources/runs/details-store.ts'
import {
  deliver,
  mergedPayload,
  pullOf,
  repositoryOf,
  sha,
  webhookSecret,
  type PullOptions,
} from '../../kit/fake-github.ts'
import { waitFor } from '../../kit/programs.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { createAutomation, runsOf, skipsOf, type WakingAgent } from './automations-kit.ts'
import { startWithGithub, workedOff } from './github-kit.ts'
import { task as createTask } from './tasks-kit.ts'
import { isTriedHere } from '../../kit/replicas.ts'

// Events of GitHub, by real deliveries to the receiver; what they are about is read from a GitHub on loopback.

let server: TestServer, agent: WakingAgent, stop: () => Promise<void>
beforeAll(async () => {
  ;({ server, agent, stop } = await startWithGithub())
})
afterAll(() => stop())

let count = 0
const newRepo = () => `acme/app-${++count}`
const send = (event: string, payload: unknown, id?: string) =>
  deliver(server.url, { event, payload, ...(id === undefined ? {} : { id }) })

/** Sends, and waits until what follows from it is done. */
async function sent(event: string, payload: unknown, id: string = crypto.randomUUID()) {
  const reply = await send(event, payload, id)
  if (reply.body.status === 'accepted') await workedOff(server, id)
  return reply
}
const statusOf = async (key: string) => (await server.ok(`/tasks/${key}`)).status
const automationOn = (repo: string, changes: Record<string, unknown> = {}) =>
  createAutomation(server, agent.id, { trigger: { event: 'pull_request.merged', repo }, ...changes })

describe('POST /integrations/github/webhook', () => {
  it('takes what is signed with the secret, in either form, and answers a ping', async () => {
    expect(await send('ping', { zen: 'x' })).toMatchObject({ status: 202, body: { status: 'pong' } })
    const payload = mergedPayload(newRepo())
    expect(await send('pull_request', payload)).toMatchObject({ status: 202, body: { status: 'accepted' } })
    const form = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const reply = await deliver(server.url, { event: 'pull_request', payload: form, headers })
    expect(reply).toMatchObject({ status: 202, body: { status: 'accepted' } })
  })

  it('refuses what is not signed, signed by another, or changed on the way', async () => {
    const payload = mergedPayload(newRepo())
    const forged = await deliver(server.url, { event: 'pull_request', payload, secret: 'another-secret' })
    expect([forged.status, forged.body.error?.code]).toEqual([401, 'auth_invalid'])
    for (const signature of ['sha256=', 'sha256=zz', 'sha1=abc', `sha256=${'0'.repeat(64)}`, 'junk']) {
      const headers = { 'x-hub-signature-256': signature }
      const reply = await deliver(server.url, { event: 'pull_request', payload, headers })
      expect([signature, reply.status]).toEqual([signature, 401])
    }
    const bare = await fetch(`${server.url}/integrations/github/webhook`, { method: 'POST', body: '{}' })
    const refused = (await bare.json()) as { error: { code: string } }
    expect([bare.status, refused.error.code]).toEqual([401, 'auth_missing'])
    expect(await server.database.root('github_deliveries').where('happening', 'like', `%app-${count}"%`)).toEqual([])
  })

  it('takes nothing that is packed, since unpacking it comes before its signature', async () => {
    const packed = gzipSync(Buffer.alloc(20 * 1024 * 1024))
    const headers = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}`, 'content-encoding': 'gzip' }
    const url = `${server.url}/integrations/github/webhook`
    const reply = await fetch(url, { method: 'POST', body: packed, headers })
    const refused = (await reply.json()) as { error: { code: string; param: string } }
    expect([reply.status, refused.error.code, refused.error.param]).toEqual([
      400,
      'validation_error',
      'Content-Encoding',
    ])
  })

  if (isTriedHere)
    it('reads a delivery of many megabytes, while small ones pass it', async () => {
      const large = { ...mergedPayload(newRepo()), more: Array.from({ length: 300_000 }, (_, at) => ({ at })) }
      const order: string[] = []
      const first = send('pull_request', large).then((reply) => {
        order.push('large')
        return reply
      })
      expect(await send('ping', {})).toMatchObject({ status: 202 })
      order.push('small')
      expect(await first).toMatchObject({ status: 202, body: { status: 'accepted' } })
      expect(order).toEqual(['small', 'large'])
      const broken = await deliver(server.url, { event: 'pull_request', payload: `{"a":"${'x'.repeat(300_000)}` })
      expect([broken.status, broken.body.error?.code]).toEqual([400, 'validation_error'])
    })

  it('takes a delivery once by its id', async () => {
    const payload = mergedPayload(newRepo())
    const id = crypto.randomUUID()
    expect((await send('pull_request', payload, id)).body.status).toBe('accepted')
    expect((await send('pull_request', payload, id)).body.status).toBe('repeated')
    const other = await Promise.all(Array.from({ length: 10 }, () => send('pull_request', payload, `${id}-2`)))
    expect(other.filter(({ body }) => body.status === 'accepted')).toHaveLength(1)
  })

  it('ignores events that it does nothing with', async () => {
    for (const [event, payload] of [
      ['push', { ref: 'refs/heads/main' }],
      ['pull_request', { ...mergedPayload(newRepo()), action: 'labeled' }],
      ['check_suite', { action: 'requested' }],
      ['check_run', { action: 'completed', check_run: { conclusion: 'failure' } }],
      ['status', { state: 'pending' }],
    ] as const)
      expect([event, (await send(event, payload)).body.status]).toEqual([event, 'ignored'])
  })

  if (isTriedHere)
    it('refuses what it cannot read', async () => {
      const bad = [
        await send('pull_request', 'no json'),
        await send('pull_request', { action: 'closed' }),
        await send('pull_request', mergedPayload('no repository')),
        await send('pull_request', mergedPayload(newRepo()), 'an id with spaces'),
      ]
      for (const reply of bad) expect([reply.status, reply.body.error?.code]).toEqual([400, 'validation_error'])
      const large = await send('push', 'x'.repeat(25 * 1024 * 1024 + 1))
      expect([large.status, large.body.error?.code]).toEqual([413, 'payload_too_large'])
      const get = await fetch(`${server.url}/integrations/github/webhook`)
      expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST'])
    })

  it('is not there without a secret', async () => {
    const bare = await TestServer.start()
    const reply = await deliver(bare.url, { event: 'ping', payload: {} })
    expect([reply.status, reply.body.error?.code]).toEqual([404, 'route_not_found'])
    await bare.stop()
  })
})

describe('a merge', () => {
  it.each<[string, (task: { key: string }) => PullOptions]>([
    ['title', ({ key }) => ({ title: `${key}: the change` })],
    ['body', ({ key }) => ({ body: `Closes ${key}.` })],
    ['branch', ({ key }) => ({ branch: `feature/${key.toLowerCase()}-the-change` })],
  ])('closes the task whose key is in its %s', async (_, pull) => {
    const task = await createTask(server)
    const other = await createTask(server)
    const repo = newRepo()
    await sent('pull_request', mergedPayload(repo, { number: 12, ...pull(task) }))
    const closed = await server.ok(`/tasks/${task.key}`)
    expect(closed).toMatchObject({
      status: 'done',
      completedAt: expect.any(String),
      pullRequest: { number: 12, url: `http://127.0.0.1/${repo}/pull/12` },
    })
    expect(await statusOf(other.key)).toBe('open')
    const { data } = await server.ok(`/tasks/${task.key}/history`)
    expect(JSON.stringify(data)).toContain('git.pull_request_merged')
  })

  it('closes the task of its branch, and the task whose pull request it is', async () => {
    const branch = `work-${crypto.randomUUID()}`
    const task = await createTask(server, { branchName: branch })
    await sent('pull_request', mergedPayload(newRepo(), { branch }))
    expect(await statusOf(task.key)).toBe('done')
    const known = await createTask(server)
    const repo = newRepo()
    const opened = (title: string) => ({
      action: 'opened',
      repository: repositoryOf(repo),
      pull_request: pullOf(repo, { number: 5, title }),
    })
    await sent('pull_request', opened(`For ${known.key}`))
    expect((await server.ok(`/tasks/${known.key}`)).pullRequest).toEqual({
      number: 5,
      url: `http://127.0.0.1/${repo}/pull/5`,
    })
    await sent('pull_request', mergedPayload(repo, { number: 5, title: 'Named anew' }))
    expect(await statusOf(known.key)).toBe('done')
  })

  it('closes tasks of all states that allow it, and leaves finished ones', async () => {
    const [working, reviewed, dropped] = [await createTask(server), await createTask(server), await createTask(server)]
    const move = (key: string, status: string) =>
      server.ok(`/tasks/${key}/transition`, { body: { status }, headers: { 'Idempotency-Key': crypto.randomUUID() } })
    await move(working.key, 'in_progress')
    await move(reviewed.key, 'in_progress')
    await move(reviewed.key, 'in_review')
    await move(dropped.key, 'cancelled')
    const title = `${working.key} ${reviewed.key} ${dropped.key}`
    await sent('pull_request', mergedPayload(newRepo(), { title }))
    expect([await statusOf(working.key), await statusOf(reviewed.key), await statusOf(dropped.key)]).toEqual([
      'done',
      'done',
      'cancelled',
    ])
  })

  it('into another branch than the default one closes the task, and fires nothing', async () => {
    const task = await createTask(server)
    const repo = newRepo()
    const { id } = await automationOn(repo)
    await sent('pull_request', mergedPayload(repo, { title: task.key, base: 'release' }))
    expect(await statusOf(task.key)).toBe('done')
    const { data } = await server.ok(`/tasks/${task.key}/activity`)
    expect(JSON.stringify(data)).toContain('"base":"release"')
    expect(await runsOf(server, id)).toEqual([])
  })

  it('closed without a merge closes nothing; the task’s history tells of it', async () => {
    const task = await createTask(server)
    const repo = newRepo()
    const pull = pullOf(repo, { title: task.key, state: 'closed' })
    await sent('pull_request', { action: 'closed', repository: repositoryOf(repo), pull_request: pull })
    expect(await statusOf(task.key)).toBe('open')
    const { data } = await server.ok(`/tasks/${task.key}/history`)
    expect(JSON.stringify(data)).toContain('git.pull_request_closed')
  })

  it('from outside of the team is the task’s that it names once it is merged, and not before', async () => {
    const task = await createTask(server, { branchName: 'mended' })
    const repo = newRepo()
    const fork = { title: task.key, branch: 'mended', fork: 2, association: 'FIRST_TIME_CONTRIBUTOR' }
    const opened = async (number: number, options: PullOptions) => {
      const pull = pullOf(repo, { number, ...options })
      await sent('pull_request', { action: 'opened', repository: repositoryOf(repo), pull_request: pull })
      return (await server.ok(`/tasks/${task.key}`)).pullRequest?.number ?? null
    }
    expect(await opened(1, fork)).toBeNull()
    expect(await opened(2, { ...fork, association: 'MEMBER' })).toBe(2)
    expect(await opened(3, fork)).toBe(2)
    expect(JSON.stringify(await server.ok(`/tasks/${task.key}/activity`))).not.toContain('/pull/3')
    expect(await opened(4, { title: task.key })).toBe(4)
    await sent('pull_request', mergedPayload(repo, { number: 5, ...fork }))
    expect(await server.ok(`/tasks/${task.key}`)).toMatchObject({ status: 'done', pullRequest: { number: 5 } })
  })

  it('is told once where the process dies before the delivery is known to be done', async () => {
    const task = await createTask(server)
    const repo = newRepo()
    const pull = pullOf(repo, { title: task.key, state: 'closed' })
    const payload = { action: 'closed', repository: repositoryOf(repo), pull_request: pull }
    const id = crypto.randomUUID()
    const told = async () => {
      const { data } = await server.ok(`/tasks/${task.key}/activity`)
      return data.filter(({ kind }: { kind: string }) => kind === 'git.pull_request_closed').length
    }
    const { root } = server.database
    const delivered = async () =>
      (await root('github_deliveries').where({ id }).first()) as { attempts: number; state: string }
    // Nothing can be said to be done now, as by a process that dies at that moment.
    const renamed = (from: string, to: string) =>
      root.schema.alterTable('github_deliveries', (t) => t.renameColumn(from, to))
    await renamed('trouble', 'away')
    await send('pull_request', payload, id)
    await waitFor(async () => (await delivered()).attempts === 1, 'the delivery is taken')
    await server.plane.sweeper.runAll()
    await renamed('away', 'trouble')
    expect((await delivered()).state).toBe('waiting')
    server.world.advance(11 * 60_000)
    await server.plane.sweeper.runAll()
    await workedOff(server, id)
    expect(await told()).toBe(1)
  })

  it('does not read words as keys', async () => {
    const task = await createTask(server)
    const [prefix, number] = task.key.split('-')
    const near = `X${task.key} ${task.key}0 ${prefix}${number} ${prefix}_${number}`
    await sent('pull_request', mergedPayload(newRepo(), { title: near, body: `${task.key.toLowerCase()} ${near}` }))
    expect(await statusOf(task.key)).toBe('open')
  })

  it('fires automations of its repository, once for each merge, with what it is about', async () => {
    const repo = newRepo()
    const { id } = await automationOn(repo.toUpperCase().replace('ACME', 'Acme'))
    const elsewhere = await automationOn(newRepo())
    const payload = mergedPayload(repo, { number: 9, title: 'Merge me' })
    await sent('pull_request', payload)
    // Another delivery of the same merge, as GitHub makes when an organisation and a repository both have the hook.
    await sent('pull_request', payload)
    const runs = await runsOf(server, id)
    expect(runs).toMatchObject([{ triggerSource: 'webhook' }])
    const prompt = (await findDetails(server.database.root, runs[0].id))?.prompt
    for (const part of ['Look.', '"pull_request.merged"', repo, '"number": 9', 'Merge me', sha('a')])
      expect(prompt).toContain(part)
    await sent('pull_request', mergedPayload(repo, { number: 10 }))
    expect(await runsOf(server, id)).toHaveLength(2)
    expect(await runsOf(server, elsewhere.id)).toEqual([])
  })

  it('starts a workflow with what it is about, whose run is the last of the automation, and one at a time', async () => {
    const repo = newRepo()
    const keys = ['repo', 'number', 'url', 'title', 'branch', 'base', 'headSha', 'missing']
    const inputs = [...keys.map((key) => ({ key })), { key: 'taskRef', kind: 'task' }]
    const { handle, id: agentId } = await server.createAgent()
    const name = await makeWorkflow(server, `await agent('Read ' + input.title, { agent: '${handle}' })`, {
      meta: { inputs },
    })
    const automation = await automationOn(repo, { workflow: name, concurrencyPolicy: 'skip_if_running' })
    await sent('pull_request', mergedPayload(repo, { number: 9, title: 'Merge me' }))
    await settled(server)
    const [flow] = (await server.ok(`/workflows/runs?workflow=${name}`)).data
    expect(flow).toMatchObject({
      status: 'running',
      input: { repo, number: '9', title: 'Merge me', base: 'main', headSha: sha('a'), missing: null, taskRef: null },
      steps: [{ agent: { id: agentId } }],
    })
    const read = () => server.ok(`/automations/${automation.id}`)
    const [{ run }] = flow.steps
    expect((await read()).lastRun).toMatchObject({ id: run.id, status: 'running', workflowRunId: flow.id })
    await sent('pull_request', mergedPayload(repo, { number: 10 }))
    expect(await skipsOf(server, automation.id)).toEqual(['concurrency'])
    await server.ok(`/workflows/runs/${flow.id}/cancel`, { method: 'POST' })
    expect((await read()).lastRun).toMatchObject({ id: run.id, status: 'failed', workflowRunId: flow.id })
    await sent('pull_request', mergedPayload(repo, { number: 11 }))
    expect((await server.ok(`/workflows/runs?workflow=${name}`)).data).toHaveLength(2)
  })

  it('starts no workflow in the name of an agent that is set not to be woken by webhooks', async () => {
    const repo = newRepo()
    const deaf = await server.createAgent({ wakeOnHook: false })
    const name = await makeWorkflow(server, 'return 1')
    const trigger = { event: 'pull_request.merged', repo }
    const { id } = await createAutomation(server, deaf.id, { trigger, workflow: name })
    await sent('pull_request', mergedPayload(repo, { number: 12 }))
    expect(await skipsOf(server, id)).toEqual(['not_admitted'])
    expect((await server.ok(`/workflows/runs?workflow=${name}`)).data).toEqual([])
  })

  it('starts no workflow in the name of an agent that takes no wakes', async () => {
    const repo = newRepo()
    const agent = await server.createAgent()
    const name = await makeWorkflow(server, 'return 1')
    const trigger = { event: 'pull_request.merged', repo }
    const { id } = await createAutomation(server, agent.id, { trigger, workflow: name })
    let number = 20
    const merge = () => sent('pull_request', mergedPayload(repo, { number: ++number }))
    const switchAll = (action: string) =>
      server.ok(`/workspaces/${server.owner.workspaceId}/${action}`, { method: 'POST' })
    await switchAll('pause-agents')
    await merge()
    await switchAll('resume-agents')
    await server.ok(`/agents/${agent.id}`, { method: 'PATCH', body: { status: 'terminated' } })
    await merge()
    await server.ok(`/agents/${agent.id}`, { method: 'DELETE' })
    await merge()
    const { data } = await server.ok(`/automations/${id}/skips`)
    expect(data).toMatchObject([
      { reason: 'not_admitted', message: expect.stringContaining('deleted') },
      { reason: 'not_admitted', message: expect.stringContaining('is terminated') },
      { reason: 'not_admitted', message: 'The agents of this workspace are paused.' },
    ])
    expect((await server.ok(`/workflows/runs?workflow=${name}`)).data).toEqual([])
  })

  it('tells the workflow the task that it is about, and starts none that needs what it does not tell', async () => {
    const repo = newRepo()
    const inputs = [{ key: 'taskRef', kind: 'task' }]
    const about = await makeWorkflow(server, 'return input.taskRef', { meta: { inputs } })
    const needs = await makeWorkflow(server, 'return 1', { meta: { inputs: [{ key: 'color', required: true }] } })
    await automationOn(repo, { workflow: about })
    const unfit = await automationOn(repo, { workflow: needs })
    const task = await server.ok('/tasks', {
      body: { title: 'Merge something', force: true },
      headers: { 'idempotency-key': crypto.randomUUID() },
    })
    await sent('pull_request', mergedPayload(repo, { number: 3, title: `${task.key}: done` }))
    await settled(server)
    const [flow] = (await server.ok(`/workflows/runs?workflow=${about}`)).data
    expect(flow).toMatchObject({ status: 'completed', summary: task.id, task: { id: task.id } })
    const { data } = await server.ok(`/automations/${unfit.id}/skips`)
    expect(data).toMatchObject([{ reason: 'not_admitted', message: expect.stringContaining('color') }])
  })

  it('is skipped with its reason: paused, archived, concurrency, no workflow of its name', async () => {
    const repo = newRepo()
    const { id } = await automationOn(repo, { concurrencyPolicy: 'skip_if_running' })
    const flow = await automationOn(repo, { workflow: 'release_notes' })
    let number = 0
    const merge = () => sent('pull_request', mergedPayload(repo, { number: ++number }))
    await merge()
    await merge()
    for (const status of ['paused', 'archived']) {
      await server.ok(`/automations/${id}`, { body: { status } })
      await merge()
    }
    expect(await skipsOf(server, id)).toEqual(['archived', 'paused', 'concurrency'])
    expect(await runsOf(server, id)).toHaveLength(1)
    const { data } = await server.ok(`/automations/${flow.id}/skips`)
    expect(data).toHaveLength(4)
    expect(data[0]).toMatchObject({ reason: 'workflow_unavailable', message: expect.stringContaining('release_notes') })
    expect(await runsOf(server, flow.id)).toEqual([])
  })
})

describe('an automation for git events', () => {
  it('is stored with its repository in small letters, and may carry a workflow', async () => {
    const made = await automationOn('Acme/Web', { workflow: 'review' })
    expect(made).toMatchObject({
      trigger: { type: 'github', event: 'pull_request.merged', repo: 'acme/web' },
      concurrencyPolicy: 'allow_concurrent',
      workflow: 'review',
    })
    const run = await server.call(`/automations/${made.id}/run`, { body: {} })
    expect(outcomeOf(run)).toBe('400 workflow_needs_github_event')
    const switched = await server.call(`/automations/${made.id}`, { body: { trigger: { cron: '0 0 * * *' } } })
    expect(outcomeOf(switched)).toBe('400 workflow_needs_github_trigger')
    const freed = await server.ok(`/automations/${made.id}`, {
      body: { trigger: { cron: '0 0 * * *' }, workflow: null },
    })
    expect(freed.trigger.type).toBe('schedule')
    const runnable = await automationOn('acme/web')
    expect((await server.ok(`/automations/${runnable.id}/run`, { body: {} })).kind).toBe('triggered')
  })

  it('needs both credentials and the secret', async () => {
    const halves: Record<string, string>[] = [
      { SVC_GITHUB_TOKEN: 'ghp_x' },
      { SVC_GITHUB_WEBHOOK_SECRET: webhookSecret },
    ]
    for (const settings of halves) {
      const half = await TestServer.start({ settings })
      const waker = await half.createAgent()
      const trigger = { event: 'pull_request.merged', repo: 'a/b' }
      const reply = await half.call('/automations', { body: { name: 'a', trigger, agentId: waker.id, prompt: 'p' } })
      expect(outcomeOf(reply)).toBe('400 github_not_installed')
      await half.stop()
    }
  })
})

describe('where a server has several workspaces', () => {
  it('a repository reaches into those only that know it', async () => {
    const own = await TestServer.start({ settings: { SVC_GITHUB_WEBHOOK_SECRET: webhookSecret } })
    try {
      const stranger = await own.addPerson('owner', 'elsewhere')
      const make = async (token: string) => {
        const headers = { 'Idempotency-Key': crypto.randomUUID() }
        return own.ok('/tasks', { body: { title: 'The same key' }, token, headers })
      }
      const [ours, theirs] = [await make(own.owner.token), await make(stranger.token)]
      const prefix = ours.key.split('-')[0]
      await own.ok('/projects', { body: { name: 'App', repoUrl: 'git@github.com:acme/app.git' } })
      const merge = async (repo: string, keys: string) => {
        const id = crypto.randomUUID()
        await deliver(own.url, { event: 'pull_request', payload: mergedPayload(repo, { title: keys }), id })
        await own.plane.sweeper.runAll()
        await waitFor(
          async () => (await own.database.root('github_deliveries').where({ id }).first('state')).state === 'done',
          'the delivery is done',
        )
      }
      const states = async () => [
        (await own.ok(`/tasks/${ours.id}`)).status,
        (await own.ok(`/tasks/${theirs.id}`, { token: stranger.token })).status,
      ]
      await merge('acme/unknown', `${ours.key} ${theirs.key}`)
      expect(await states()).toEqual(['open', 'open'])
      await merge('acme/app', `${ours.key} ${theirs.key}`)
      expect(await states()).toEqual(['done', 'open'])
      expect(prefix).toMatch(/^[A-Z]+$/)
    } finally {
      await own.stop()
    }
  })
})
