import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { WorkflowRun } from '../../shared/api/workflow-fields.ts'
import { hasPostgres, openPostgres } from '../kit/database.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { makeRepo } from '../kit/system-scenario.ts'
import { shortDurations, TestSystem, type SystemOptions } from '../kit/system.ts'

/**
 * Programs of six steps each, whose agents really run, while control planes and the daemon are killed at random moments:
 * each step is dispatched once, its command is started once, and each program ends. `FAULT_WORKFLOWS` sets their number.
 */
const count = Number(process.env['FAULT_WORKFLOWS'] ?? 2)

const source = `export const meta = { name: 'six', title: 'Six steps', toolPermissionMode: 'full' }
phase('begin')
const first = await agent('first', { label: 'first', agent: '@worker', task: null })
phase('both')
const both = await parallel(['a', 'b'].map((name) => () => agent(name + ' after ' + first, { label: name, agent: '@worker', task: null })))
const two = ['c', 'd'].map((name) => agent(name, { agent: '@worker', task: null }))
const either = await Promise.race(two)
await Promise.all(two)
log('either', either.length > 0)
const last = await agent('last after ' + both.length, { label: 'last', agent: '@worker', task: null })
return [first, ...both, last].map((text) => text.trim()).join('|')
`

const options = (): SystemOptions => {
  const short = shortDurations(10)
  return { ...short, serverEnv: { ...short.serverEnv, SVC_SWEEP_MS: '3000' } }
}

async function play(options: SystemOptions): Promise<void> {
  const system = await TestSystem.start({ ...options, devices: 1, capacity: 4 })
  try {
    const { api } = system.servers.at(-1)!
    const folder = join(system.root, 'repo')
    makeRepo(folder)
    const { publicId } = system.device.identity
    const { shortId } = await api.addFolder({ displayName: 'repo', rootPath: folder, deviceId: publicId })
    const starts = join(system.root, 'starts')
    const command = `echo "$SVC_PROMPT" >> ${starts}; sleep 0.2; printf 'did %s' "$SVC_PROMPT"`
    await api.createAgent({ name: 'Worker', harness: 'command', command, defaultFolderId: shortId })
    await api.insist('/workflows/records', { source })
    const ids: string[] = []
    for (let number = 0; number < count; number++)
      ids.push((await api.insist<{ id: string }>('/workflows/runs', { workflow: 'six' })).id)
    const over = new AbortController()
    const trouble = faults(system, over.signal)
    trouble.catch(() => undefined)
    const read = (id: string) => api.call<WorkflowRun>('GET', `/workflows/runs/${id}`).catch(() => null)
    let last: WorkflowRun[] = []
    try {
      await waitFor(
        async () => {
          const runs = await Promise.all(ids.map(read))
          if (runs.every((run) => run !== null)) last = runs
          return runs.every((run) => run !== null && run.status !== 'running')
        },
        'all programs end',
        { ms: 60_000 + count * 5_000, everyMs: 300, about: () => JSON.stringify(last, null, 1) },
      )
    } finally {
      over.abort()
      await trouble
    }
    const runs = await Promise.all(ids.map((id) => waitFor(() => read(id), 'the server answers', { everyMs: 100 })))
    for (const run of runs) {
      expect(run, JSON.stringify(run, null, 1)).toMatchObject({ status: 'completed', error: null })
      expect(run.summary).toMatch(/^did first\|did a after did first\|did b after did first\|did last after 2$/)
      expect(run.log).toEqual(['either true'])
      expect(run.steps.map(({ stepOrdinal, state }) => [stepOrdinal, state])).toEqual(
        [0, 1, 2, 3, 4, 5].map((ordinal) => [ordinal, 'done']),
      )
    }
    // By the account of the commands themselves.
    const lines = existsSync(starts) ? readFileSync(starts, 'utf8').split('\n').filter(Boolean) : []
    const times = (prompt: string) => lines.filter((line) => line === prompt).length
    for (const prompt of ['first', 'a after did first', 'b after did first', 'c', 'd', 'last after 2'])
      expect([prompt, times(prompt)]).toEqual([prompt, count])
    expect(lines).toHaveLength(6 * count)
  } finally {
    await system.stop()
  }
}

/** Kills the first replica or the daemon, twice for each program, and starts it anew. */
async function faults(system: TestSystem, over: AbortSignal): Promise<void> {
  const random = seededRandom('workflows')
  const [first] = system.servers
  for (let kill = 0; kill < 2 * count && !over.aborted; kill++) {
    await delay(200 + random() * 1_500)
    if (random() < 0.3) {
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

test('on SQLite, while the server and the daemon are killed', { timeout: 200_000 + count * 6_000 }, () =>
  play(options()),
)

test.skipIf(!hasPostgres())(
  'on two replicas, while one of them and the daemon are killed',
  { timeout: 200_000 + count * 6_000 },
  async () => {
    const database = await openPostgres()
    try {
      await play({ ...options(), replicas: 2, databaseUrl: database.url })
    } finally {
      await database.close()
    }
  },
)
