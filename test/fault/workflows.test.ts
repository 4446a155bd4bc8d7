import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { WorkflowRun } from '../../shared/api/workflow-fields.ts'
import { deliver, githubSettings, pullOf, repositoryOf, sha, startFakeGithub } from '../kit/fake-github.ts'
import { hasPostgres, openPostgres } from '../kit/database.ts'
import { isLong, repeats } from '../kit/forms.ts'
import { delay, Hopeless, seededRandom, waitFor } from '../kit/programs.ts'
import type { TestServer } from '../kit/system-server.ts'
import { shortDurations, TestSystem, type SystemOptions } from '../kit/system.ts'

/**
 * Programs of agents, a gate, a question, checks and many steps at once, which really run, while control planes and the daemon are killed at
 * random moments: each step is dispatched once, its command is started once, and each program ends. `FAULT_WORKFLOWS` sets their number.
 */
const count = repeats('FAULT_WORKFLOWS', { short: 1, long: 4 })

/** Steps at once at its end; none in the short form, where the two of `both` and the race are those at once. */
const fan = count > 2 ? 20 : 0
const repo = 'acme/six'
/** Between two looks at all programs: of two hundred, more would be most of what the servers do. */
const lookMs = 20 * count
/** A busy machine takes a second for each step; four are at work at once. */
const allMs = 60_000 + count * (6 + fan) * 1_000

const source = `export const meta = { name: 'six', title: 'Six steps', toolPermissionMode: 'full' }
const on = { agent: '@worker', task: null }
phase('begin')
const first = await agent('first', { label: 'first', ...on })
phase('both')
const both = await parallel(['a', 'b'].map((name) => () => agent(name + ' after ' + first, { label: name, ...on })))
const two = [agent('c', on), gate(['sh', '-c', 'echo gate >> "$0"; exit 3', STARTS], on)]
const either = await Promise.race(two)
const [, { exitCode }] = await Promise.all(two)
log('either', either !== null, exitCode)
phase('waits')
const waited = await Promise.all([ask('Which colour?', { options: ['red', 'blue'] }), checks({ branch: 'topic', repo: '${repo}' })])
phase('many')
const many = await parallel(Array.from({ length: ${fan} }, (_, n) => () => agent('many ' + n, on)))
const last = await agent('last after ' + both.length + waited[0] + waited[1].state, { label: 'last', ...on })
return [first, ...both, last].map((text) => text.trim()).join('|') + '|' + new Set(many).size
`

const options = (): SystemOptions => {
  const short = shortDurations(10)
  return { ...short, serverEnv: { ...short.serverEnv, SVC_SWEEP_MS: '3000' } }
}

async function play(options: SystemOptions): Promise<void> {
  const github = await startFakeGithub()
  github.answers.set(`/${repo}/pulls`, [{ number: 1 }])
  github.answers.set(`/${repo}/pulls/1`, pullOf(repo))
  const done = { name: 'test', status: 'completed', conclusion: 'success', html_url: 'http://127.0.0.1/test' }
  github.answers.set(`/${repo}/commits/${sha('a')}/check-runs`, { check_runs: [done] })
  github.answers.set(`/${repo}/commits/${sha('a')}/status`, { statuses: [] })
  const serverEnv = { ...options.serverEnv, ...githubSettings(github) }
  const system = await TestSystem.start({ ...options, serverEnv, devices: 1, capacity: 4 })
  try {
    const { api } = system.servers.at(-1)!
    const folder = join(system.root, 'repo')
    mkdirSync(folder)
    const { publicId } = system.device.identity
    const { shortId } = await api.addFolder({ displayName: 'repo', rootPath: folder, deviceId: publicId })
    const starts = join(system.root, 'starts')
    const command = `echo "$SVC_PROMPT" >> ${starts}; sleep 0.2; printf 'did %s' "$SVC_PROMPT"`
    await api.createAgent({ name: 'Worker', harness: 'command', command, defaultFolderId: shortId })
    await api.insist('/workflows/records', { source: source.replace('STARTS', `'${starts}'`) })
    const ids: string[] = []
    for (let number = 0; number < count; number++)
      ids.push((await api.insist<{ id: string }>('/workflows/runs', { workflow: 'six' })).id)
    const over = new AbortController()
    const trouble = Promise.all([faults(system, over.signal), answers(system.servers.at(-1)!, ids, over.signal)])
    let failed: string | null = null
    trouble.catch((error: unknown) => (failed = String(error)))
    const read = (id: string) => api.call<WorkflowRun>('GET', `/workflows/runs/${id}`).catch(() => null)
    // Only those at work are read: to read all of them again and again would be most of the work.
    const atWork = new Map<string, WorkflowRun | null>(ids.map((id) => [id, null]))
    try {
      await waitFor(
        async () => {
          if (failed !== null) throw new Hopeless(failed)
          for (const id of atWork.keys()) {
            const run = await read(id)
            if (run !== null && run.status !== 'running') atWork.delete(id)
            else if (run !== null) atWork.set(id, run)
          }
          return atWork.size === 0
        },
        'all programs end',
        { ms: allMs, everyMs: Math.max(300, lookMs), about: () => JSON.stringify([...atWork.values()], null, 1) },
      )
    } finally {
      over.abort()
      await trouble
    }
    const runs = await Promise.all(ids.map((id) => waitFor(() => read(id), 'the server answers', { everyMs: 100 })))
    for (const run of runs) {
      expect(run, JSON.stringify(run, null, 1)).toMatchObject({ status: 'completed', error: null })
      const last = 'did last after 2bluepassed'
      expect(run.summary).toBe(`did first|did a after did first|did b after did first|${last}|${fan}`)
      expect(run.log).toEqual(['either true 3'])
      expect(run.steps.map(({ stepOrdinal, state }) => [stepOrdinal, state])).toEqual(
        Array.from({ length: 6 + fan }, (_, ordinal) => [ordinal, 'done']),
      )
    }
    // By the account of the commands themselves.
    const lines = existsSync(starts) ? readFileSync(starts, 'utf8').split('\n').filter(Boolean) : []
    const times = (prompt: string) => lines.filter((line) => line === prompt).length
    const many = Array.from({ length: fan }, (_, n) => `many ${n}`)
    const others = ['first', 'a after did first', 'b after did first', 'c', 'gate', 'last after 2bluepassed']
    for (const prompt of [...others, ...many]) expect([prompt, times(prompt)]).toEqual([prompt, count])
    expect(lines).toHaveLength((6 + fan) * count)
  } finally {
    await system.stop()
    await github.stop()
  }
}

/** A person answers whatever the programs ask, and GitHub tells of its checks. */
async function answers(server: TestServer, ids: readonly string[], over: AbortSignal): Promise<void> {
  const { api } = server
  const [answered, past] = [new Set<string>(), new Set<string>()]
  while (!over.aborted) {
    for (const id of ids) {
      if (past.has(id) || over.aborted) continue
      const run = await api.call<WorkflowRun>('GET', `/workflows/runs/${id}`).catch(() => null)
      if (run === null) continue
      if (run.parkedChecks !== null) await tellChecks(server.url).catch(() => null)
      const question = run.parkedQuestion?.id
      if (answered.has(id) && run.parkedChecks === null) past.add(id)
      if (question === undefined || answered.has(id)) continue
      // A server that dies meanwhile may have taken it or not (`idempotency_effect_unknown`): the run is looked at again.
      const answer = { text: null, selected: ['blue'] }
      const headers = { 'idempotency-key': crypto.randomUUID() }
      const taken = await api
        .raw('POST', `/questions/${question}/answer`, { body: { answer }, headers })
        .catch(() => null)
      if (taken?.status === 200) answered.add(id)
    }
    await delay(Math.max(100, lookMs))
  }
}

/** Kills the first replica, and then it or the daemon, twice for each program, and starts it anew. */
async function faults(system: TestSystem, over: AbortSignal): Promise<void> {
  const random = seededRandom('workflows')
  const [first] = system.servers
  for (let kill = 0; kill < 2 * count && !over.aborted; kill++) {
    await delay(200 + random() * 1_500)
    if (kill > 0 && random() < 0.3) {
      await system.device.kill9()
      await delay(random() * 300)
      system.device.launch()
    } else {
      await first!.kill9()
      await delay(random() * 300)
      await first!.start()
    }
  }
}

test('on SQLite, while the server and the daemon are killed', { timeout: 200_000 + allMs }, () => play(options()))

// In the short form the tests of the API run programs on two replicas, and `workflow-deaths.test.ts` lets one die at each write.
if (isLong)
  test.skipIf(!hasPostgres())(
    'on two replicas, while one of them and the daemon are killed',
    { timeout: 200_000 + allMs },
    async () => {
      const database = await openPostgres()
      try {
        await play({ ...options(), replicas: 2, databaseUrl: database.url })
      } finally {
        await database.close()
      }
    },
  )

const tellChecks = (url: string) =>
  deliver(url, {
    event: 'check_suite',
    payload: {
      action: 'completed',
      repository: repositoryOf(repo),
      check_suite: { head_sha: sha('a'), conclusion: 'success', pull_requests: [{ number: 1 }] },
    },
  })
