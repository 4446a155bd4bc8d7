import { z } from 'zod'
import type { GateReason } from '../../shared/api/agent-runs.ts'
import type { AgentRef, DeviceRef, RunId } from '../../shared/lib/ids.ts'
import { int } from '../db/columns.ts'
import { dialectOfDb } from '../db/dialect.ts'
import type { Db } from '../db/open.ts'
import { command, returning, Texts, type Value } from '../db/statement.ts'
import { insertBoth } from '../db/table.ts'
import { detailsInsert, type NewDetails } from '../resources/runs/details-table.ts'
import type { Lease } from '../resources/runs/lease-store.ts'
import { runs, type RunRow, type RunStep } from '../resources/runs/store.ts'
import type { Offer, RunLife } from './life.ts'
import { changesBy, conditionsFor, madeWith, phaseAfter, type ChangingEvent } from './machine.ts'
import { phaseColumns, phaseRow, tellChange, tellMade, type ChangedRun } from './phase-changes.ts'

// The only file that writes rows of `runs`, but for the sweep that removes those of removed workspaces. Each change is an event of
// the machine, and its statement is made of the machine's rule: a compare-and-set on what the rule asks of the row, so that an event
// which the machine refuses changes nothing. No statement reads the row first, and what comes often is one statement for all of
// it: offers, claims and endings of one moment, each row under the conditions of its own event, and all events of a run that were received together.
// Whoever watches is told here of each run that came into another phase (`phase-changes.ts`).

const given = [
  'id',
  'workspaceId',
  'agentRef',
  'triggerSource',
  'requestedByRef',
  'causedByUuid',
  'wordsBy',
  'instructionsBy',
  'harness',
  'environmentType',
  'folderId',
  'repoId',
  'taskId',
  'taskKey',
  'taskTitle',
  'conversationId',
  'parentRunId',
  'modelId',
  'reasoningEffort',
  'permissionMode',
  'providerKeyId',
  'fallbackHarness',
  'fallbackKeyId',
  'fallbackModel',
  'compacts',
  'inLineSince',
  'workflowRunId',
  'workflowCall',
  'createdAt',
] as const
type Given = Pick<RunRow, (typeof given)[number]>
export type NewRun = Omit<Given, 'workflowRunId' | 'workflowCall'> & {
  /** The step of a workflow that it does; null or left out: none. */
  step?: RunStep | null
  /** The offer with which the run begins, under fence 1; null or left out: it waits. */
  offer?: Offer | null
  /** What keeps it from being offered, for whoever watches; null or left out: nothing that is known. */
  gate?: GateReason | null
}

const insert = insertBoth(
  runs.inserter([...given, 'status', 'fence', 'leaseState', 'device', 'offeredAt', 'offerExpiresAt']),
  detailsInsert,
)

/** The event `made`. */
export async function insertRun(
  db: Db,
  { offer = null, step = null, gate = null, ...run }: NewRun,
  details: NewDetails,
): Promise<void> {
  const ofStep = { workflowRunId: step?.workflowRunId ?? null, workflowCall: step?.call ?? null }
  const made = { ...run, ...ofStep, ...madeWith(offer) }
  await insert(db, made, { ...details, runId: run.id })
  tellMade(db, made, { offer, gate })
}

/** Returns whether the event changed the run; without effect where the machine refuses it. */
export async function changeRun(db: Db, id: RunId, event: SingleEvent): Promise<boolean> {
  if (isEmpty(event)) return false
  const { sql, values } = updateFor(event, 'id = ?', [id])
  if (phaseAfter(event) === null) return (await texts.change(db, sql, values)) === 1
  const row = await changedRow(db, { id, sql, values })
  if (row === undefined) return false
  tellChange(db, event, phaseRow.parse(row))
  return true
}

/**
 * The row as the statement left it; undefined: it changed nothing. SQLite keeps what `returning` gives in a file of its own, which a server
 * that may open no further one does not get; nobody else writes to it between two statements of a transaction.
 */
async function changedRow(
  db: Db,
  { id, sql, values }: { id: RunId; sql: string; values: readonly Value[] },
): Promise<unknown> {
  if (dialectOfDb(db) === 'postgres') return (await texts.changed(db, `${sql} returning ${phaseColumns}`, values))[0]
  if ((await texts.change(db, sql, values)) !== 1) return undefined
  return texts.first(db, `select ${phaseColumns} from runs where id = ?`, [id])
}

/** The event has nothing to write. */
const isEmpty = (event: SingleEvent) => event.type === 'progress_told' && !event.usage && !event.sessionId

/** Events of one run of which nobody reads the row that they leave. */
export type SingleEvent = Exclude<ChangingEvent, { type: 'offered' | 'claimed' | 'session_forgotten' | 'removed' }>

/** An event of one run among many. */
export interface RunChange {
  id: RunId
  event: SingleEvent
}

/**
 * Sends events of several runs, each of which is named once, by one statement for all that write the same columns. Each event changes its run
 * under the conditions that `changeRun` has for it alone. Returns the runs that changed.
 */
export async function changeRuns(db: Db, changes: readonly RunChange[]): Promise<Set<RunId>> {
  const [only, ...others] = changes
  if (only === undefined) return new Set()
  if (others.length === 0) return new Set((await changeRun(db, only.id, only.event)) ? [only.id] : [])
  const changed = new Set<RunId>()
  const events = new Map(changes.map(({ id, event }) => [id, event]))
  const given = changes.filter(({ event }) => !isEmpty(event)).map(({ id, event }) => givenFor(id, event))
  for (const [sql, rows] of Map.groupBy(given, ({ sql }) => sql))
    for (const found of await texts.changed(db, `${sql} returning ${phaseColumns}`, [listOf(rows)])) {
      const row = phaseRow.parse(found)
      changed.add(row.id)
      tellChange(db, events.get(row.id)!, row)
    }
  return changed
}

const texts = new Texts(100)

/** Offers queued runs to a device, each under a higher fence. Returns those that no other writer was first with. */
export async function offerRuns(db: Db, { runIds, ...offer }: { runIds: readonly RunId[] } & Offer): Promise<Lease[]> {
  return tellOffers(db, offer, await offers(db, updateFor({ type: 'offered', ...offer }, 'id in ?', [runIds])))
}

/** `offer`: of any of them, since the device of each is in its row. */
function tellOffers(db: Db, { at, expiresAt }: Offer, offered: readonly ChangedRun[]): Lease[] {
  return offered.map((run) => {
    tellChange(db, { type: 'offered', device: run.device!, at, expiresAt }, run)
    return { runId: run.id, fence: run.fence }
  })
}

/** The same for runs of which each is offered to a device of its own. */
export async function offerEach(db: Db, given: readonly ({ runId: RunId } & Offer)[]): Promise<Lease[]> {
  const [only, ...others] = given
  if (only === undefined) return []
  if (others.length === 0) return offerRuns(db, { ...only, runIds: [only.runId] })
  const updates = given.map(({ runId, ...offer }) => givenFor(runId, { type: 'offered', ...offer }))
  return tellOffers(db, only, await offers(db, { sql: updates[0]!.sql, values: [listOf(updates)] }))
}

/** The device that was offered a run takes it. `isLone`: only one that works on no task. */
export interface Claim extends Lease {
  device: DeviceRef
  at: number
  isLone?: boolean
}

/** A run as it is now, with what its start needs to know of its agent at this moment. */
export interface ClaimedRun {
  run: RunRow
  tokenGeneration: number
  hasSecrets: boolean
}

/** Repeating it changes nothing: null. */
export async function claimRun(db: Db, { runId, ...claim }: Claim): Promise<ClaimedRun | null> {
  const [claimed] = await claims(db, updateFor({ type: 'claimed', ...claim }, 'id = ?', [runId]))
  if (claimed === undefined) return null
  tellChange(db, { type: 'claimed', ...claim }, claimed.run)
  return claimed
}

/**
 * The same for many, each under its own fence and device. `areFree`: a run whose row another transaction has locked is left out, and may be
 * claimed by itself.
 */
export async function claimRuns(
  db: Db,
  given: readonly Claim[],
  { areFree = false }: { areFree?: boolean } = {},
): Promise<ClaimedRun[]> {
  const [only, ...others] = given
  if (only === undefined) return []
  if (others.length === 0) return [await claimRun(db, only)].filter((claimed) => claimed !== null)
  const updates = given.map(({ runId, ...claim }) =>
    givenFor(runId, { type: 'claimed', ...claim }, areFree ? ' and free' : ''),
  )
  const claimed: ClaimedRun[] = []
  for (const [sql, rows] of Map.groupBy(updates, ({ sql }) => sql))
    claimed.push(...(await claims(db, { sql, values: [listOf(rows)] })))
  const asked = new Map(given.map((claim) => [claim.runId, claim]))
  for (const { run } of claimed) tellChange(db, { type: 'claimed', ...asked.get(run.id)! }, run)
  return claimed
}

const claimedRow = z
  .looseObject({ token_generation: int, grants: int })
  .transform((r): ClaimedRun => ({ run: runs.part(r), tokenGeneration: r.token_generation, hasSecrets: r.grants > 0 }))

/** The session is gone or full: no later run of the agent goes on with it. */
export async function forgetHarnessSession(db: Db, of: { agentRef: AgentRef; sessionId: string }): Promise<void> {
  const { sql, values } = updateFor({ type: 'session_forgotten', sessionId: of.sessionId }, 'agent_id = ?', [
    of.agentRef,
  ])
  await texts.change(db, sql, values)
}

interface Update {
  sql: string
  values: readonly Value[]
}

const columns = runs.fields() as Readonly<Record<keyof RunLife, string>>

/** `which`: the rows that it is about, before the conditions of the rule. */
function updateFor(event: ChangingEvent, which: string, ids: readonly Value[]): Update {
  const { sets = {}, raises = {}, copies = {}, appends } = changesBy(event)
  const { is, set = [] } = conditionsFor(event)
  const written = Object.entries(runs.toColumns(sets)) as [string, Value][]
  const grown = Object.entries(raises) as ['fence' | 'eventBytes', number][]
  const copied = Object.entries(copies) as [keyof RunLife, keyof RunLife][]
  const assignments = [
    ...written.map(([column]) => `${column} = ?`),
    ...grown.map(([field]) => `${columns[field]} = ${columns[field]} + ?`),
    ...copied.map(([field, other]) => `${columns[field]} = ${columns[other]}`),
    ...(appends === undefined ? [] : [`error_message = coalesce(error_message || ' ', '') || ?`]),
  ]
  const asked = Object.entries(runs.toColumns(is)) as [string, Value][]
  const conditions = [
    which,
    ...asked.map(([column, value]) => `${column} ${value === null ? 'is null' : '= ?'}`),
    ...set.map((field) => `${columns[field]} is not null`),
  ]
  return {
    sql: `update runs set ${assignments.join(', ')} where ${conditions.join(' and ')}`,
    values: [
      ...written.map(([, value]) => value),
      ...grown.map(([, by]) => by),
      ...(appends === undefined ? [] : [appends]),
      ...ids,
      ...asked.flatMap(([, value]) => (value === null ? [] : [value])),
    ],
  }
}

/** An update of many runs, and the values that it takes of one of them. */
interface GivenUpdate {
  sql: string
  row: Record<string, Value>
}

const listOf = (given: readonly GivenUpdate[]) => JSON.stringify(given.map(({ row }) => row))

/** The same update for the many runs that are given with it. Columns that are written and columns that are asked have names of their own. */
function givenFor(id: RunId, event: ChangingEvent, andFree: ' and free' | '' = ''): GivenUpdate {
  const { sets = {}, raises = {}, copies = {}, appends } = changesBy(event)
  const { is, set = [] } = conditionsFor(event)
  const row: Record<string, Value> = { id }
  const types = ['id text']
  const give = (name: string, type: string, value: Value) => {
    row[name] = value
    types.push(`${name} ${type}`)
    return `given.${name}`
  }
  const typeOf = (column: string) => runs.types.get(column)!
  const written = Object.entries(runs.toColumns(sets)) as [string, Value][]
  const grown = Object.entries(raises) as ['fence' | 'eventBytes', number][]
  const copied = Object.entries(copies) as [keyof RunLife, keyof RunLife][]
  const asked = Object.entries(runs.toColumns(is)) as [string, Value][]
  const assignments = [
    ...written.map(([column, value]) => `${column} = ${give(`to_${column}`, typeOf(column), value)}`),
    ...grown.map(
      ([field, by]) => `${columns[field]} = runs.${columns[field]} + ${give(`by_${columns[field]}`, 'bigint', by)}`,
    ),
    ...copied.map(([field, other]) => `${columns[field]} = runs.${columns[other]}`),
    ...(appends === undefined
      ? []
      : [`error_message = coalesce(runs.error_message || ' ', '') || ${give('also', 'text', appends)}`]),
  ]
  const conditions = [
    `runs.id is given${andFree}`,
    ...asked.map(([column, value]) =>
      value === null ? `runs.${column} is null` : `runs.${column} = ${give(`was_${column}`, typeOf(column), value)}`,
    ),
    ...set.map((field) => `runs.${columns[field]} is not null`),
  ]
  return {
    sql: `with given (${types.join(', ')}) as ? update runs set ${assignments.join(', ')} from given where ${conditions.join(' and ')}`,
    row,
  }
}

/** Sends updates that end with `rest`; each text is prepared once. */
function telling<Row>(rest: string, row: { parse(row: unknown): Row }): (db: Db, update: Update) => Promise<Row[]> {
  const known = new Map<string, ReturnType<typeof returning<Row>>>()
  return (db, { sql, values }) => {
    const send = known.get(sql) ?? returning(`${sql} ${rest}`, row)
    known.set(sql, send)
    return send(db, values)
  }
}

const offers = telling(`returning ${phaseColumns}`, phaseRow)
const claims = telling(
  `returning ${runs.select('runs')},
  coalesce((select token_generation from agents where agents.id = runs.agent_id), 0) as token_generation,
  (select count(*) from secret_grants where secret_grants.agent_id = runs.agent_id) as grants`,
  claimedRow,
)

const removal = command('delete from runs where id in ? and ended_at is not null')

/** Removes the rows of runs that have ended, once nothing else of them is needed (`sweeps/retention-store.ts`). */
export async function removeEndedRuns(db: Db, ids: readonly RunId[]): Promise<void> {
  await removal(db, [ids])
}
