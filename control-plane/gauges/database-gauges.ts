import { Gauge, type Registry } from 'prom-client'
import type { Knex } from 'knex'
import { approvalTriggers } from '../../shared/api/approval-words.ts'
import type { World } from '../../shared/lib/world.ts'
import { inOneTrip } from '../db/one-trip.ts'
import type { Askable } from '../db/open.ts'
import { readTogether } from '../db/statement.ts'
import type { Log } from '../process/log.ts'
import {
  countDeliveries,
  countDevicesByLink,
  countOpenApprovals,
  countOpenQuestions,
  countRunsByPhase,
  countWaitingWakes,
  type KindCount,
} from './store.ts'

export interface DatabaseGaugesOptions {
  root: Knex
  world: Pick<World, 'now' | 'monotonic' | 'after'>
  log: Log
  registry: Registry
  leaseMs: number
}

/** Within this time the numbers are not read anew, however many ask. */
const freshMs = 5_000
/** Whoever reads the metrics waits no longer for the database: what a replica knows by itself is wanted most while that is slow. */
const patienceMs = 2_000

/** A gauge of how many there are of each kind, and one of the age of the first. */
interface Kinds {
  label: string
  kinds: readonly string[]
  count: Gauge
  oldest: Gauge | null
  read(db: Askable, moment: { now: number; leaseMs: number }): Promise<KindCount[]>
}

/**
 * Gauges of what the database holds. They are read when the metrics are, once for all who ask at that time, and have the same value on
 * each replica. While the database does not answer they are left out, and `svc_database_up` says so: an old number would look like a true one.
 */
export class DatabaseGauges {
  private readonly options: DatabaseGaugesOptions
  private readonly all: readonly Kinds[]
  private readonly up: Gauge
  private reading: Promise<void> | null = null
  private readAt = -Infinity

  constructor(options: DatabaseGaugesOptions) {
    this.options = options
    const { registry } = options
    const gauge = (name: string, help: string, ...labelNames: string[]) =>
      new Gauge({ name, help, labelNames, registers: [registry] })
    this.up = gauge('svc_database_up', '1: the gauges of what the database holds could be read.')
    this.all = [
      {
        label: 'phase',
        kinds: ['waiting', 'offered', 'running', 'stopping'],
        count: gauge('svc_runs', 'Runs that have not ended, by phase.', 'phase'),
        oldest: gauge('svc_runs_oldest_seconds', 'Age of the oldest run in each phase.', 'phase'),
        read: countRunsByPhase,
      },
      {
        label: 'trigger',
        kinds: approvalTriggers,
        count: gauge('svc_approvals_open', 'Approvals that wait for a person, by what raised them.', 'trigger'),
        oldest: gauge('svc_approvals_open_oldest_seconds', 'Age of the oldest open approval.', 'trigger'),
        read: countOpenApprovals,
      },
      {
        label: 'state',
        kinds: ['open'],
        count: gauge('svc_questions', 'Questions that wait for an answer.', 'state'),
        oldest: gauge('svc_questions_oldest_seconds', 'Age of the oldest open question.', 'state'),
        read: countOpenQuestions,
      },
      {
        label: 'state',
        kinds: ['waiting'],
        count: gauge('svc_wakes', 'Wakes that are not runs yet.', 'state'),
        oldest: gauge('svc_wakes_oldest_seconds', 'Age of the oldest wake that waits.', 'state'),
        read: countWaitingWakes,
      },
      {
        label: 'state',
        kinds: ['linked', 'not_linked', 'retired'],
        count: gauge('svc_devices', 'Devices of people, by whether a replica holds their link.', 'state'),
        oldest: null,
        read: countDevicesByLink,
      },
      {
        label: 'state',
        kinds: ['waiting', 'failed'],
        count: gauge('svc_github_deliveries', 'Deliveries of GitHub that wait, or were given up.', 'state'),
        oldest: null,
        read: countDeliveries,
      },
    ]
  }

  /** Resolves when the gauges are as fresh as they get. Never fails. */
  async refresh(): Promise<void> {
    const { world } = this.options
    if (this.reading === null && world.monotonic() - this.readAt < freshMs) return
    const reading = (this.reading ??= this.read().finally(() => (this.reading = null)))
    await new Promise<void>((resolve) => {
      const stop = world.after(patienceMs, () => {
        this.leaveOut()
        resolve()
      })
      void reading.then(() => {
        stop()
        resolve()
      })
    })
  }

  private async read(): Promise<void> {
    const { root, world, log, leaseMs } = this.options
    try {
      const moment = { now: world.now(), leaseMs }
      const asks = this.all.map((kinds) => (db: Askable) => kinds.read(db, moment))
      const found = await readTogether(root, (db) => inOneTrip(db, asks))
      for (const [at, kinds] of this.all.entries()) show(kinds, found[at]!, moment.now)
      this.up.set(1)
      this.readAt = world.monotonic()
    } catch (error) {
      this.leaveOut()
      log.warn({ err: error }, 'the gauges of the database could not be read')
    }
  }

  private leaveOut(): void {
    this.readAt = -Infinity
    this.up.set(0)
    for (const { count, oldest } of this.all) {
      count.reset()
      oldest?.reset()
    }
  }
}

function show({ label, kinds, count, oldest }: Kinds, found: readonly KindCount[], now: number): void {
  const byKind = new Map(found.map((each) => [each.kind, each]))
  for (const kind of kinds) {
    const { count: number = 0, oldestAt = null } = byKind.get(kind) ?? {}
    count.set({ [label]: kind }, number)
    oldest?.set({ [label]: kind }, oldestAt === null ? 0 : Math.max(0, now - oldestAt) / 1_000)
  }
}
