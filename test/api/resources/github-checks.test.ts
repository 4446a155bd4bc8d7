import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { deliver, pullOf, repositoryOf, sha, type FakeGithub, type PullOptions } from '../../kit/fake-github.ts'
import { waitFor } from '../../kit/programs.ts'
import type { TestServer } from '../../kit/server.ts'
import { createAutomation, runsOf, skipsOf, type WakingAgent } from './automations-kit.ts'
import { startWithGithub, workedOff } from './github-kit.ts'

// Automations on `pull_request.checks_passed`: a task's open pull request goes all green at a new head.

let github: FakeGithub, server: TestServer, agent: WakingAgent, stop: () => Promise<void>
beforeAll(async () => {
  ;({ github, server, agent, stop } = await startWithGithub())
})
afterAll(() => stop())
beforeEach(() => {
  github.trouble = null
})

let count = 0

/** A task with an open pull request that is all green, and an automation that waits for it. */
async function scene(options: PullOptions & { named?: boolean } = {}) {
  const repo = `acme/checked-${++count}`
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  const task = await server.ok('/tasks', { body: { title: `Checked ${crypto.randomUUID()}` }, headers })
  const { id } = await createAutomation(server, agent.id, { trigger: { event: 'pull_request.checks_passed', repo } })
  const set = (changes: PullOptions = {}) => {
    const title = options.named === false ? 'No task' : `${task.key} change`
    github.answers.set(`/${repo}/pulls/1`, pullOf(repo, { title, ...options, ...changes }))
  }
  const setChecks = (commit: string, conclusions: (string | null)[], states: string[] = []) => {
    const runs = conclusions.map((conclusion) => ({
      status: conclusion === null ? 'in_progress' : 'completed',
      conclusion,
    }))
    github.answers.set(`/${repo}/commits/${commit}/check-runs`, { check_runs: runs })
    github.answers.set(`/${repo}/commits/${commit}/status`, { statuses: states.map((state) => ({ state })) })
  }
  const setReviews = (reviews: object[]) => github.answers.set(`/${repo}/pulls/1/reviews`, reviews)
  set()
  setChecks(sha('a'), ['success', 'skipped', 'neutral'], ['success'])
  setReviews([])
  const skips = () => skipsOf(server, id)
  const runs = () => runsOf(server, id)
  return { repo, id: id as string, task, set, setChecks, setReviews, skips, runs }
}

/** A check suite that passed, delivered and worked off. */
async function passed(repo: string, commit: string, event: 'check_suite' | 'check_run' | 'status' = 'check_suite') {
  const at = { head_sha: commit, conclusion: 'success', pull_requests: [{ number: 1 }] }
  const repository = repositoryOf(repo)
  const payload =
    event === 'status'
      ? { repository, sha: commit, state: 'success' }
      : { action: 'completed', repository, [event]: at }
  const id = crypto.randomUUID()
  expect((await deliver(server.url, { event, payload, id })).body.status).toBe('accepted')
  await workedOff(server, id)
}

describe('checks that pass at the head of a task’s pull request', () => {
  it('fire once for each head, whichever check is the last', async () => {
    const { repo, runs, set, setChecks } = await scene()
    await passed(repo, sha('a'), 'check_run')
    expect(await runs()).toMatchObject([{ triggerSource: 'webhook' }])
    const asked = github.asked.length
    await passed(repo, sha('a'))
    expect([(await runs()).length, github.asked.length]).toEqual([1, asked])
    set({ sha: sha('b') })
    setChecks(sha('b'), ['success'])
    await passed(repo, sha('b'))
    expect(await runs()).toHaveLength(2)
  })

  it('fire by a commit status too, whose pull requests are asked for', async () => {
    const { repo, runs, setChecks } = await scene()
    setChecks(sha('a'), [], ['success'])
    github.answers.set(`/${repo}/commits/${sha('a')}/pulls`, [{ number: 1 }])
    await passed(repo, sha('a'), 'status')
    expect(await runs()).toHaveLength(1)
  })

  it.each<[string, (string | null)[], string[]]>([
    ['one still runs', ['success', null], []],
    ['one failed', ['success', 'failure'], []],
    ['one was cancelled', ['cancelled'], []],
    ['a status waits', ['success'], ['pending']],
    ['a status failed', ['success'], ['failure']],
    ['there is none', [], []],
  ])('fire nothing while %s', async (_, conclusions, states) => {
    const { repo, runs, skips, setChecks } = await scene()
    setChecks(sha('a'), conclusions, states)
    await passed(repo, sha('a'))
    expect([await runs(), await skips()]).toEqual([[], []])
    setChecks(sha('a'), ['success'])
    await passed(repo, sha('a'))
    expect(await runs()).toHaveLength(1)
  })

  it('count all of them, page by page', async () => {
    const { repo, runs } = await scene()
    const run = (conclusion: string) => ({ status: 'completed', conclusion })
    const pages = [Array.from({ length: 100 }, () => run('success')), [run('failure')]]
    github.answers.set(`/${repo}/commits/${sha('a')}/check-runs`, (query: URLSearchParams) => ({
      check_runs: pages[Number(query.get('page')) - 1],
    }))
    await passed(repo, sha('a'))
    expect(await runs()).toEqual([])
  })

  it('fire nothing when the pull request is closed, or of no task', async () => {
    const closed = await scene({ state: 'closed' })
    await passed(closed.repo, sha('a'))
    const nobodys = await scene({ named: false })
    await passed(nobodys.repo, sha('a'))
    for (const { runs, skips } of [closed, nobodys]) expect([await runs(), await skips()]).toEqual([[], []])
  })

  it('are skipped as stale_head when the pull request moved on', async () => {
    const { repo, runs, skips, id, set } = await scene()
    set({ sha: sha('b') })
    await passed(repo, sha('a'))
    await passed(repo, sha('a'), 'check_run')
    expect([await runs(), await skips()]).toEqual([[], ['stale_head']])
    const { data } = await server.ok(`/automations/${id}/skips`)
    expect(data[0].message).toContain(sha('b'))
  })

  it('are skipped while the automation is paused', async () => {
    const { repo, runs, skips, id } = await scene()
    await server.ok(`/automations/${id}/pause`, { body: {} })
    await passed(repo, sha('a'))
    expect([await runs(), await skips()]).toEqual([[], ['paused']])
  })

  it('are not asked about when no automation waits for them', async () => {
    const before = github.asked.length
    await passed('acme/nobody', sha('a'))
    expect(github.asked).toHaveLength(before)
  })
})

describe('a pull request from another repository', () => {
  it('is the task’s that it names when its author is of the team', async () => {
    const { repo, runs } = await scene({ fork: 2, association: 'COLLABORATOR' })
    await passed(repo, sha('a'))
    expect(await runs()).toHaveLength(1)
  })

  it('is no task’s by its words or its branch when anybody can have opened it', async () => {
    const branch = `work-${crypto.randomUUID()}`
    const { repo, task, runs } = await scene({ fork: 2, association: 'CONTRIBUTOR', branch })
    await server.database.root('tasks').where({ id: task.id }).update({ branch_name: branch })
    await passed(repo, sha('a'))
    expect(await runs()).toEqual([])
    // It was taken for the task's, by whoever pushed it to the repository.
    const known = JSON.stringify({ number: 1, url: pullOf(repo).html_url })
    await server.database.root('tasks').where({ id: task.id }).update({ pull_request: known })
    await passed(repo, sha('a'))
    expect(await runs()).toHaveLength(1)
  })
})

describe('a verdict', () => {
  it.each([
    ['an approval', { state: 'APPROVED', body: '' }],
    ['a request for changes', { state: 'CHANGES_REQUESTED', body: 'no' }],
    ['a line of a comment', { state: 'COMMENTED', body: 'Read all.\n\n**Verdict:** approve' }],
    ['a line of refusal', { state: 'COMMENTED', body: 'Verdict: needs work' }],
  ])('at the head is enough: %s', async (_, review) => {
    const { repo, runs, skips, setReviews } = await scene()
    setReviews([{ ...review, commit_id: sha('a'), author_association: 'MEMBER' }])
    await passed(repo, sha('a'))
    expect([await runs(), await skips()]).toEqual([[], ['verdict_exists']])
  })

  it('is given by an app, and by nobody from outside of the team', async () => {
    const approval = { state: 'APPROVED', body: 'Verdict: approve', commit_id: sha('a') }
    const byApp = await scene()
    byApp.setReviews([{ ...approval, author_association: 'NONE', user: { login: 'reviewer[bot]', type: 'Bot' } }])
    await passed(byApp.repo, sha('a'))
    expect([await byApp.runs(), await byApp.skips()]).toEqual([[], ['verdict_exists']])
    const byAnybody = await scene()
    byAnybody.setReviews([
      { ...approval, author_association: 'CONTRIBUTOR', user: { login: 'stranger', type: 'User' } },
      { ...approval, state: 'COMMENTED', author_association: 'NONE', user: { login: 'stranger', type: 'User' } },
    ])
    await passed(byAnybody.repo, sha('a'))
    expect([(await byAnybody.runs()).length, await byAnybody.skips()]).toEqual([1, []])
  })

  it('is none in a comment without such a line, or at an earlier head', async () => {
    const { repo, runs, setReviews } = await scene()
    setReviews([
      { state: 'COMMENTED', body: 'I have no verdict yet', commit_id: sha('a'), author_association: 'OWNER' },
      { state: 'CHANGES_REQUESTED', body: '', commit_id: sha('9'), author_association: 'OWNER' },
    ])
    await passed(repo, sha('a'))
    expect(await runs()).toHaveLength(1)
  })
})

describe('an approval of an earlier head', () => {
  const file = (patch: string) => ({ filename: 'a.ts', status: 'modified', sha: sha('1'), patch })
  /** The head merges main (m) into the approved head (9). */
  async function merged(changes: { parents?: string[]; position?: string; after?: object[] } = {}) {
    const own = await scene()
    own.setReviews([{ state: 'APPROVED', body: '', commit_id: sha('9'), author_association: 'OWNER' }])
    const parents = (changes.parents ?? [sha('9'), sha('e')]).map((parent) => ({ sha: parent }))
    github.answers.set(`/${own.repo}/commits/${sha('a')}`, { parents })
    const put = (range: string, body: object) => github.answers.set(`/${own.repo}/compare/${range}`, body)
    put(`main...${sha('e')}`, { status: changes.position ?? 'behind', files: [] })
    put(`${sha('e')}...${sha('9')}`, { status: 'diverged', files: [file('@@ -1,2 +1,3 @@\n a\n+b')] })
    const after = changes.after ?? [{ ...file('@@ -11,2 +11,3 @@\n a\n+b'), sha: sha('2') }]
    put(`${sha('e')}...${sha('a')}`, { status: 'ahead', files: after })
    await passed(own.repo, sha('a'))
    return [(await own.runs()).length, await own.skips()]
  }

  it('is carried across a clean merge of the base branch, with no run', async () => {
    expect(await merged()).toEqual([0, ['carried']])
  })

  it.each([
    ['the head is no merge', { parents: [sha('9')] }],
    ['the head merges into another commit', { parents: [sha('8'), sha('e')] }],
    ['what was merged is not of the base branch', { position: 'ahead' }],
    [
      'the merge changed lines',
      { after: [{ filename: 'a.ts', status: 'modified', sha: sha('3'), patch: '@@ x\n a\n+c' }] },
    ],
    [
      'the merge changed another file',
      { after: [{ filename: 'b.ts', status: 'added', sha: sha('3'), patch: '@@\n+c' }] },
    ],
    ['it cannot be told', { after: [{ filename: 'a.ts', status: 'modified', sha: sha('3') }] }],
  ])('does not hold when %s', async (_, changes) => {
    expect(await merged(changes)).toEqual([1, []])
  })
})

describe('a GitHub that does not answer', () => {
  it.each([
    ['fails', { status: 502, text: 'oops' }],
    ['limits the rate', { status: 403, text: '{"message":"API rate limit exceeded"}' }],
    ['is no GitHub', { status: 200, text: '<html>' }],
    ['says what does not fit', { status: 200, text: '{"number":"one"}' }],
  ])('is asked again later, and nothing is lost: it %s', async (_, trouble) => {
    const { repo, runs } = await scene()
    github.trouble = trouble
    const id = crypto.randomUUID()
    const at = { head_sha: sha('a'), conclusion: 'success', pull_requests: [{ number: 1 }] }
    const payload = { action: 'completed', repository: repositoryOf(repo), check_suite: at }
    await deliver(server.url, { event: 'check_suite', payload, id })
    const row = () => server.database.root('github_deliveries').where({ id }).first()
    await waitFor(async () => (await row()).trouble, 'the first try failed')
    expect(await row()).toMatchObject({ state: 'waiting', attempts: 1 })
    github.trouble = null
    await server.plane.sweeper.runAll()
    expect(await runs()).toEqual([])
    server.world.advance(11_000)
    await server.plane.sweeper.runAll()
    await waitFor(async () => (await row()).state === 'done', 'the delivery is done')
    expect(await row()).toMatchObject({ trouble: null })
    expect(await runs()).toHaveLength(1)
  })

  it('is given up after twelve tries, until GitHub is asked to send it again', async () => {
    const { repo, runs } = await scene()
    github.trouble = { status: 500, text: '' }
    const id = crypto.randomUUID()
    const at = { head_sha: sha('a'), conclusion: 'success', pull_requests: [{ number: 1 }] }
    const payload = { action: 'completed', repository: repositoryOf(repo), check_suite: at }
    await deliver(server.url, { event: 'check_suite', payload, id })
    const row = () => server.database.root('github_deliveries').where({ id }).first()
    await waitFor(async () => (await row()).trouble, 'the first try failed')
    for (let i = 0; i < 15; i++) {
      server.world.advance(61 * 60_000)
      await server.plane.sweeper.runAll()
      await server.plane.github.idle()
    }
    expect(await row()).toMatchObject({ state: 'failed', attempts: 12, trouble: 'GitHub answered 500' })
    github.trouble = null
    expect((await deliver(server.url, { event: 'check_suite', payload, id })).body.status).toBe('accepted')
    await waitFor(async () => (await row()).state === 'done', 'the delivery is done')
    expect(await runs()).toHaveLength(1)
    expect((await deliver(server.url, { event: 'check_suite', payload, id })).body.status).toBe('repeated')
  })
})
