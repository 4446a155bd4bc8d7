import { expect } from 'vitest'
import type { RunId } from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { findRun, type RunRow } from '../../control-plane/resources/runs/store.ts'
import { changeRun, claimRun, forgetHarnessSession, offerRuns } from '../../control-plane/run/change-store.ts'
import type { RunEvent, RunLife } from '../../control-plane/run/life.ts'
import { step } from '../../control-plane/run/machine.ts'
import { onBoth } from '../kit/database.ts'
import { repeats } from '../kit/forms.ts'
import { drawEvent, givenRun, randomFrom } from '../kit/run-events.ts'
import { seedAgent, seedRun, seedWorkspace } from './seed.ts'

const histories = repeats('RUN_ROWS', { short: 40, long: 1_000 })
const seed = Number(process.env['RUN_SEED'] ?? 44)

/** Sends the event as the parts of the server do. Returns whether it changed the row. */
async function send(db: Db, run: RunRow, event: Exclude<RunEvent, { type: 'made' | 'removed' }>): Promise<boolean> {
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
  for (let at = 0; at < histories; at++) {
    const agent = await seedAgent(root, workspaceId)
    const made = drawEvent(random, null, 'made')
    const run = await seedRun(root, agent, { ...givenRun, ...('offer' in made && { offer: made.offer }) })
    let life = lifeAfter(null, made)!
    let view = life
    expect(await lifeIn(root, run.id, life)).toEqual(life)
    for (let events = 20; events > 0; events--) {
      if (random() < 0.6) view = life
      const event = drawEvent(random, view)
      if (event.type === 'made' || event.type === 'removed') continue
      const next = lifeAfter(life, event)
      expect([event, await send(root, (await findRun(root, run.id))!, event)]).toEqual([event, next !== null])
      if (next !== null) changes++
      life = next ?? life
      expect(await lifeIn(root, run.id, life)).toEqual(life)
    }
  }
  expect(changes).toBeGreaterThan(histories)
})

/** null: the machine refuses it. */
function lifeAfter(life: RunLife | null, event: RunEvent): RunLife | null {
  const outcome = step(life, event)
  return 'refused' in outcome ? null : outcome.life
}
