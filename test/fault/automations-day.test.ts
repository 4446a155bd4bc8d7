import { expect, test } from 'vitest'
import { loadCatalog } from '../../control-plane/catalog/catalog.ts'
import { loadServices } from '../../control-plane/catalog/services.ts'
import { openDatabase, type Database, type Db } from '../../control-plane/db/open.ts'
import { silentLog, type Log } from '../../control-plane/process/log.ts'
import { nextInstant } from '../../control-plane/resources/automations/schedule.ts'
import { insertAutomation } from '../../control-plane/resources/automations/store.ts'
import { dueAutomationsSweep } from '../../control-plane/sweeps/due.ts'
import { Sweeper } from '../../control-plane/sweeps/sweeper.ts'
import { hasPostgres, openPostgres } from '../kit/database.ts'
import { isLong, repeats } from '../kit/forms.ts'
import { movableWorld, type MovableWorld } from '../kit/server.ts'
import { automationRow } from '../store/automations-rows.ts'
import { seedAgent, seedWorkspace } from '../store/seed.ts'

/**
 * Automations (`FAULT_AUTOMATIONS` sets how many), each due once on the first of November in its own time zone (in New York
 * the clocks are set back that day), and two replicas that look for what is due at the same moments. Connections are cut in the middle of
 * the work, one replica is replaced by a new one, and for 40 minutes there is none.
 */
const workspaces = isLong ? 40 : 8
const total = Math.ceil(repeats('FAULT_AUTOMATIONS', { short: 80, long: 2_000 }) / workspaces) * workspaces
const zones = ['UTC', 'Asia/Kolkata', 'America/New_York', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/Sao_Paulo']
const minute = 60_000
/** From midnight on, when the clocks are set back: in the short form a third of the day, which is as long in each zone. */
const dayMinutes = isLong ? 1_440 : 480
const begin = Date.parse('2026-10-31T12:55:00Z')
const end = Date.parse('2026-11-02T05:05:00Z') - (1_440 - dayMinutes) * minute
const stepMs = 10 * minute

test.skipIf(!hasPostgres())(
  `two replicas and ${total} due automations over a simulated day: each fires exactly once`,
  async () => {
    const database = await openPostgres()
    const others: Database[] = []
    const open = () => {
      const replica = openDatabase({ url: database.url, poolSize: 4 })
      others.push(replica)
      return replica
    }
    try {
      const world = movableWorld()
      world.advance(begin - world.now())
      const expected = await seed(database.root, world)
      const troubles = new Troubles(world)
      const newReplica = () => replica(open(), world, troubles.log)
      const first = newReplica()
      let second = newReplica()
      for (let at = begin, step = 0; at <= end; at += stepMs, step++) {
        world.advance(at - world.now())
        // Nobody is there for 40 minutes, again and again; less than an hour, so nothing is given up, also not what the
        // next cuts put off by two steps.
        if (step % 60 >= 50 && step % 60 < 53) continue
        if (step % 40 === 20) second = newReplica()
        const work = Promise.all([first.runAll(), second.runAll()])
        if (step % 10 === 5) await cutConnections(database.root)
        await work
      }
      // What a cut left for the next pass.
      await Promise.all([first.runAll(), second.runAll()])
      await compare(database.root, { expected, troubles })
    } finally {
      for (const each of others) await each.close()
      await database.close()
    }
  },
  600_000,
)

/** Says what went wrong with each automation, and when: the reason why one fired too late, or not. */
class Troubles {
  readonly #of = new Map<unknown, string[]>()
  readonly log: Log

  constructor(world: MovableWorld) {
    const error = ({ err, automationId }: { err?: unknown; automationId?: string }, message: string) => {
      const told = `${new Date(world.now()).toISOString()} ${message}: ${err instanceof Error ? err.message : String(err)}`
      this.#of.set(automationId, [...this.of(automationId), told])
    }
    this.log = { ...silentLog, error }
  }

  of(automationId: unknown): string[] {
    return this.#of.get(automationId) ?? []
  }
}

function replica({ root }: Database, world: MovableWorld, log: Log): Sweeper {
  const catalog = loadCatalog(null)
  const offers = { world, leaseMs: 90_000, isLinked: () => false, offerMs: 10_000, push: () => undefined }
  const context = {
    world,
    cloudEnabled: false,
    operatorKeys: [],
    runsWorkflows: true,
    builtInWorkflows: () => [],
    limits: {},
    catalog,
    services: loadServices(null),
    offers,
  }
  const sweep = dueAutomationsSweep({ everyMs: 1_000, context })
  return new Sweeper({ root, world, log, sweeps: [sweep], tickMs: 1_000 })
}

/** Returns the instant of each automation by its id. */
async function seed(db: Db, world: MovableWorld): Promise<Map<string, number>> {
  const expected = new Map<string, number>()
  for (let w = 0; w < workspaces; w++) {
    const agent = await seedAgent(db, await seedWorkspace(db))
    await db.transaction(async (tx) => {
      for (let i = 0; i < total / workspaces; i++) {
        const n = w * (total / workspaces) + i
        const timezone = zones[n % zones.length]!
        const time = (n * 7) % dayMinutes
        const cron = `${time % 60} ${Math.floor(time / 60)} 1 11 *`
        const instant = nextInstant({ cron, timezone }, world.now())!
        const row = automationRow(agent, { triggerType: 'schedule', cron, timezone, nextFireAt: instant })
        await insertAutomation(tx, row)
        expected.set(row.id, instant)
      }
    })
  }
  return expected
}

/** All connections to the database but this one: work under way is undone, or committed without an answer. */
async function cutConnections(db: Db): Promise<void> {
  await db.raw(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
}

async function compare(
  db: Db,
  { expected, troubles }: { expected: Map<string, number>; troubles: Troubles },
): Promise<void> {
  const fires: { automation_id: string; occasion: string; kind: string; run_id: string; created_at: number }[] =
    await db('automation_fires').select('automation_id', 'occasion', 'kind', 'run_id', 'created_at')
  const runs: { id: string }[] = await db('runs').where({ trigger_source: 'cron' }).select('id')
  expect(fires).toHaveLength(total)
  expect(new Set(fires.map((fire) => fire.automation_id)).size).toBe(total)
  const wrong = fires.filter((fire) => {
    const instant = expected.get(fire.automation_id)!
    const lateMs = fire.created_at - instant
    return fire.occasion !== `schedule ${instant}` || fire.kind !== 'triggered' || lateMs < 0 || lateMs >= 60 * minute
  })
  // Also what befell whole passes.
  expect(
    wrong.map((fire) => ({ ...fire, troubles: [...troubles.of(fire.automation_id), ...troubles.of(undefined)] })),
  ).toEqual([])
  expect(runs).toHaveLength(total)
  expect(new Set(fires.map((fire) => fire.run_id))).toEqual(new Set(runs.map((run) => run.id)))
  const waiting: unknown = await db('automations').where('next_fire_at', '<', end).first('id')
  expect(waiting).toBeUndefined()
}
