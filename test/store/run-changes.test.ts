import type { Knex } from 'knex'
import { expect } from 'vitest'
import { fail } from '../../shared/api/errors.ts'
import type { RunId } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { findRun, type RunRow } from '../../control-plane/resources/runs/store.ts'
import {
  changeRun,
  changeRuns,
  claimRun,
  claimRuns,
  forgetHarnessSession,
  offerEach,
  offerRuns,
} from '../../control-plane/run/change-store.ts'
import { inSavepoint, inTransaction } from '../../control-plane/db/transaction.ts'
import { phaseOf, type RunEvent, type RunLife } from '../../control-plane/run/life.ts'
import { step } from '../../control-plane/run/machine.ts'
import { observePhases, type PhaseChange } from '../../control-plane/run/phase-changes.ts'
import { onBoth } from '../kit/database.ts'
import { repeats } from '../kit/forms.ts'
import { drawEvent, drawEvents, givenRun, randomFrom } from '../kit/run-events.ts'
import { seedAgent, seedRun, seedWorkspace } from './seed.ts'

const histories = repeats('RUN_ROWS', { short: 40, long: 1_000 })
const seed = Number(process.env['RUN_SEED'] ?? 44)

/** Sends the event as the parts of the server do. Returns whether it changed the row. */
async function send(
  db: Db,
  run: Pick<RunRow, 'id' | 'agentRef'>,
  event: Exclude<RunEvent, { type: 'made' | 'removed' }>,
): Promise<boolean> {
  const runId = run.id
  switch (event.type) {
    case 'offered': {
      const { device, at, expiresAt } = event
      return (await offerRuns(db, { runIds: [runId], device, at, expiresAt })).length === 1
    }
    case 'claimed':
      return (await claimRun(db, { runId, ...event })) !== null
    case 'session_forgotten': {
      const before = await findRun(db, runId)
      await forgetHarnessSession(db, { agentRef: run.agentRef, sessionId: event.sessionId })
      return before?.sessionId === event.sessionId
    }
    default:
      return changeRun(db, runId, event)
  }
}

async function lifeIn(db: Db, runId: RunId, like: RunLife): Promise<RunLife> {
  const row = (await findRun(db, runId))!
  const columns = Object.keys(like) as (keyof RunLife)[]
  return Object.fromEntries(columns.map((column) => [column, row[column]])) as unknown as RunLife
}

onBoth(`the row changes as the machine says, in ${histories} histories with the seed ${seed}`, async ({ root }) => {
  const random = randomFrom(seed)
  const workspaceId = await seedWorkspace(root)
  let changes = 0
  const told = watch(root)
  for (let at = 0; at < histories; at++) {
    const agent = await seedAgent(root, workspaceId)
    const made = drawEvent(random, null, 'made')
    const run = await seedRun(root, agent, { ...givenRun, ...('offer' in made && { offer: made.offer }) })
    let life = lifeAfter(null, made)!
    let view = life
    expect(told.splice(0)).toEqual([toldOf(run, made, [null, life])])
    expect(await lifeIn(root, run.id, life)).toEqual(life)
    for (let events = 20; events > 0; events--) {
      if (random() < 0.6) view = life
      const event = drawEvent(random, view)
      if (event.type === 'made' || event.type === 'removed') continue
      const next = lifeAfter(life, event)
      expect([event, await send(root, (await findRun(root, run.id))!, event)]).toEqual([event, next !== null])
      if (next !== null) changes++
      const isTold = next !== null && phaseOf(next) !== phaseOf(life)
      expect(told.splice(0)).toEqual(isTold ? [toldOf(run, event, [life, next])] : [])
      life = next ?? life
      expect(await lifeIn(root, run.id, life)).toEqual(life)
    }
  }
  expect(changes).toBeGreaterThan(histories)
})

type Changing = Exclude<RunEvent, { type: 'made' | 'removed' }>
type Together = Exclude<Changing, { type: 'offered' | 'session_forgotten' }>
const isTogether = (event: RunEvent): event is Together =>
  !['made', 'removed', 'offered', 'session_forgotten'].includes(event.type)

/** Sends events of several runs as the parts of the server do. Returns the runs that they changed. */
async function sendTogether(db: Db, events: readonly { id: RunId; event: Together }[]): Promise<Set<RunId>> {
  const claimed = events.flatMap(({ id: runId, event }) => (event.type === 'claimed' ? [{ runId, ...event }] : []))
  const others = events.flatMap(({ id, event }) => (event.type === 'claimed' ? [] : [{ id, event }]))
  const rows = await claimRuns(db, claimed)
  for (const { run } of rows) expect(run).toEqual(await findRun(db, run.id))
  return new Set([...rows.map(({ run }) => run.id), ...(await changeRuns(db, others))])
}

const atOnce = 6
const moments = repeats('RUN_ROWS', { short: 60, long: 1_500 })

onBoth(`rows change together as each would alone, at ${moments} moments with the seed ${seed}`, async ({ root }) => {
  const random = randomFrom(seed)
  const workspaceId = await seedWorkspace(root)
  const born = async () => {
    const made = drawEvent(random, null, 'made')
    const agent = await seedAgent(root, workspaceId)
    const run = await seedRun(root, agent, { ...givenRun, ...('offer' in made && { offer: made.offer }) })
    const life = lifeAfter(null, made)!
    return { run, life, view: life }
  }
  let all = await Promise.all(Array.from({ length: atOnce }, born))
  const told = watch(root)
  const counts = { changed: 0, refused: 0 }
  for (let moment = 0; moment < moments; moment++) {
    for (const each of all) {
      if (random() < 0.7) each.view = each.life
    }
    // Half of all runs are offered, each to a device of its own: so the next claims find something.
    const offers = all.flatMap(({ run, view }) => {
      const offered = drawEvent(random, view, 'offered')
      return offered.type !== 'offered' || random() < 0.5 ? [] : [{ runId: run.id, offered }]
    })
    told.splice(0)
    const leases = await offerEach(
      root,
      offers.map(({ runId, offered: { device, at, expiresAt } }) => ({ runId, device, at, expiresAt })),
    )
    const offered = told.splice(0).toSorted(byRun)
    expect(offered.map(({ runId, from, to }) => `${runId} ${from} ${to}`)).toEqual(
      leases.map(({ runId }) => `${runId} waiting offered`).toSorted((a, b) => (a < b ? -1 : 1)),
    )
    for (const { runId, offered } of offers) {
      const each = all.find(({ run }) => run.id === runId)!
      const next = lifeAfter(each.life, offered)
      const lease = leases.find((of) => of.runId === runId) ?? null
      expect([offered, lease]).toEqual([offered, next && { runId, fence: next.fence }])
      each.life = next ?? each.life
    }
    const drawn = drawEvents(
      random,
      all.map(({ view }) => view),
    )
    const events = drawn.flatMap((event, at) => (isTogether(event) ? [{ id: all[at]!.run.id, event }] : []))
    expect(events).toHaveLength(atOnce)
    const next = events.map(({ event }, at) => lifeAfter(all[at]!.life, event))
    told.splice(0)
    const changed = await sendTogether(root, events)
    const expected = events.flatMap(({ id, event }, at) => {
      const [{ life, run }, after] = [all.find((each) => each.run.id === id)!, next[at]!]
      return after === null || phaseOf(after) === phaseOf(life) ? [] : [toldOf(run, event, [life, after])]
    })
    expect(told.splice(0).toSorted(byRun)).toEqual(expected.toSorted(byRun))
    expect([events, changed]).toEqual([
      events,
      new Set(events.filter((_, at) => next[at] !== null).map(({ id }) => id)),
    ])
    for (const [at, each] of all.entries()) {
      counts[next[at] === null ? 'refused' : 'changed']++
      each.life = next[at] ?? each.life
      expect(await lifeIn(root, each.run.id, each.life)).toEqual(each.life)
    }
    if (moment % 6 === 5) all = await Promise.all(Array.from({ length: atOnce }, born))
  }
  expect(counts.changed).toBeGreaterThan(moments)
  expect(counts.refused).toBeGreaterThan(moments)
})

/** The changes of phases that are told from here on. */
function watch(root: Knex): PhaseChange[] {
  const told: PhaseChange[] = []
  observePhases(root, (change) => told.push(change))
  return told
}

const byRun = (a: PhaseChange, b: PhaseChange) => (a.runId < b.runId ? -1 : 1)

/** What is told of an event, by the machine alone. */
function toldOf(
  run: Pick<RunRow, 'id' | 'workspaceId' | 'agentRef' | 'createdAt'>,
  event: RunEvent,
  [before, after]: readonly [RunLife | null, RunLife],
): PhaseChange {
  return {
    runId: run.id,
    workspaceId: run.workspaceId,
    agentRef: run.agentRef,
    event: event.type,
    from: before && phaseOf(before),
    to: phaseOf(after),
    fence: after.fence,
    device: after.device ?? ('device' in event ? (event.device ?? null) : null),
    exitReason: 'exitReason' in event ? event.exitReason : null,
    reason: null,
    gate: null,
    waitedMs: event.type === 'claimed' ? event.at - run.createdAt : null,
  }
}

onBoth('a change of a phase is told once it is committed, and never when it is undone', async ({ root }) => {
  const run = await seedRun(root, await seedAgent(root, await seedWorkspace(root)), givenRun)
  const told = watch(root)
  const ended = { type: 'cancelled', exitReason: 'interrupted', errorMessage: null, endedAt: 1 } as const
  const undone = inTransaction(root, async (tx) => {
    expect(await changeRun(tx, run.id, ended)).toBe(true)
    throw new Error('no')
  })
  await expect(undone).rejects.toThrow('no')
  await inTransaction(root, async (tx) => {
    const inner = inSavepoint(tx, async (within) => {
      expect(await changeRun(within, run.id, ended)).toBe(true)
      throw new Error('not this')
    })
    await expect(inner).rejects.toThrow('not this')
  })
  expect(told).toEqual([])
  let attempts = 0
  await inTransaction(root, async (tx) => {
    expect(await inSavepoint(tx, (within) => changeRun(within, run.id, ended))).toBe(true)
    expect(told).toEqual([])
    // As where another transaction was in the way: the work is done again.
    if (++attempts === 1) fail('transient_conflict')
  })
  expect([attempts, told.map(({ from, to }) => [from, to])]).toEqual([2, [['waiting', 'ended']]])
})

onBoth(
  'of several replicas that find the same gate one writes it, and the time of the first stays',
  async ({ root }) => {
    const run = await seedRun(root, await seedAgent(root, await seedWorkspace(root)), givenRun)
    expect(await changeRun(root, run.id, { type: 'gate_closed' })).toBe(false)
    expect(await changeRun(root, run.id, { type: 'gate_opened', at: 5 })).toBe(true)
    expect(await changeRun(root, run.id, { type: 'gate_opened', at: 6 })).toBe(false)
    expect((await findRun(root, run.id))!.ungatedSince).toBe(5)
    expect(await changeRun(root, run.id, { type: 'gate_closed' })).toBe(true)
    expect(await changeRun(root, run.id, { type: 'gate_closed' })).toBe(false)
  },
)

onBoth('who watches no more is told nothing, and neither is whoever watches another database', async ({ root }) => {
  const run = await seedRun(root, await seedAgent(root, await seedWorkspace(root)), givenRun)
  const told: PhaseChange[] = []
  observePhases(root, (change) => told.push(change))()
  await changeRun(root, run.id, { type: 'cancelled', exitReason: 'interrupted', errorMessage: null, endedAt: 1 })
  expect(told).toEqual([])
})

/** null: the machine refuses it. */
function lifeAfter(life: RunLife | null, event: RunEvent): RunLife | null {
  const outcome = step(life, event)
  return 'refused' in outcome ? null : outcome.life
}
