import type { Knex } from 'knex'
import { ApiError } from '../../shared/api/errors.ts'
import { awaitedAtEnd, collectAnswers } from './statement.ts'
import { dialectOfDb, NotBegunError, undoneFor, type Undone } from './dialect.ts'
import type { Askable, Db, Tx } from './handle.ts'
import { sendEntries, writeEntries, type OutboxEntry, type WrittenEntry } from './outbox.ts'
import type { BeginConfig, PostgresClient } from './postgres-client.ts'
import type { QueryState } from './query-failure.ts'
import { acquireAdvisoryLocks, type LocalLocks } from './advisory-locks.ts'

/**
 * The one way to a transaction that writes. On PostgreSQL it is serializable: whatever replicas do at once, the state that
 * is left is that of some order of their transactions. The database undoes what no order gives, and the work is done
 * again here, from its beginning. So the work keeps nothing outside of its transaction: what is to happen once it is
 * committed (`afterCommit`) is collected anew at each attempt. SQLite has one writer, so it gives an order by nature; the
 * lock of the writer is taken at the beginning, and other processes are waited for there (sqlite-client.ts).
 *
 * A transaction as a whole, with the wait for its locks and all its attempts, ends within the write timeout (deadline.ts).
 *
 * Transactions that are known to meet take advisory locks (`locks`; that of the workspace, mostly) before they read anything:
 * of two that overlap the database would undo one. Locks are for speed alone: what forgets to take one is still right.
 *
 * The writes that need not go through here are listed in below-serializable.ts, each with its reason.
 */
export interface TransactionOptions {
  /** Names of advisory locks: transactions with one in common follow one another, on all replicas. */
  locks?: readonly string[]
  /** An entry of below-serializable.ts: nobody decides by what it writes. */
  below?: 'run events' | 'rows of what was removed'
  /** Fails as `transient_conflict` when it waits longer than this for a row that another one holds. */
  lockMs?: number
}

export interface ReadAhead<Read> {
  /**
   * Reads that depend on nothing in the transaction, which PostgreSQL is asked in the round trip of the beginning. It only reads: if
   * the transaction does not begin, it is asked outside of it, and what it read is dropped.
   */
  ahead?: (db: Askable) => Promise<Read>
}

/** The state that a process keeps of its writes to a database; docs/operations.md tells how long they may take. */
export interface WriteState extends QueryState {
  localLocks: LocalLocks
  /** Observers are told of each transaction that is done again or given up. */
  readonly observers: Set<WriteObserver>
  /** Called after each commit that published to the outbox, on PostgreSQL with what it published. */
  readonly onPublished: Set<(written: readonly WrittenEntry[]) => void>
  /** Functions that are told of each `afterCommit` step that threw. The change is committed all the same. */
  readonly onStepFailed: Set<(error: unknown) => void>
}

type Step = () => void

/** Steps to be done once these transactions are committed. */
const steps = new WeakMap<object, Step[]>()
/** Entries that transactions publish, written in one statement before they are committed. */
const entries = new WeakMap<object, OutboxEntry[]>()

/** Runs the step once the transaction is committed, never when it is undone. It may not wait for anything. */
export function afterCommit(tx: Tx, step: Step): void {
  addStep(tx, step)
}

function addStep(to: object, step: Step): void {
  const before = steps.get(to)
  if (before === undefined) steps.set(to, [step])
  else before.push(step)
}

/**
 * The same on any handle. Outside of a transaction each statement is committed when it is answered, so the step is run at once. The end of a
 * transaction that `inTransaction` did not begin is not learned here: the step is never run.
 */
export function onceCommitted(db: Db, step: Step): void {
  if (entries.has(db)) addStep(db, step)
  else if (db.isTransaction !== true) runSteps(writeStateOf(db), [step])
}

/**
 * Publishes entries in the order of the calls, and tells `onPublished` once they are committed. In a transaction they are written at the
 * end.
 */
export async function publish(db: Db, entry: OutboxEntry): Promise<void> {
  const before = entries.get(db)
  if (before !== undefined) return void before.push(entry)
  const state = writeStateOf(db)
  // A transaction that `inTransaction` did not begin ends without this process learning of its commit.
  const isForeign = db.isTransaction === true
  const written = await writeEntries(db, [entry], { notifies: isForeign || isAlone(state) })
  if (!isForeign) tellPublished(state, written)
}

/** Tells whether nobody is told of what was published, so that nobody tells the other processes either. */
const isAlone = ({ onPublished }: WriteState) => onPublished.size === 0

function tellPublished({ onPublished }: WriteState, written: readonly WrittenEntry[]): void {
  for (const tell of onPublished) tell(written)
}

function runSteps({ onStepFailed }: WriteState, ofTransaction: readonly Step[]): void {
  for (const step of ofTransaction) {
    try {
      step()
    } catch (error) {
      for (const tell of onStepFailed) tell(error)
    }
  }
}

export type WriteObserver = (happened: 'again' | 'given up', cause: Undone) => void

/** The last of them is answered as it ended. */
const maxAttempts = 10
/** A row that another one inserted first is seen by the next attempt; if it is still in the way, it stands in its way for good. */
const maxOfDuplicates = 3

export const writeStateOf = (root: Knex): WriteState =>
  (root.client as { config: { writes: WriteState } }).config.writes

/**
 * Does the work in a transaction, with what was read ahead, again when it was undone for another one, until it is committed or
 * refused. Fails with a NotBegunError when it did not come as far as the work.
 */
export async function inTransaction<Result, Read>(
  root: Knex,
  work: (tx: Tx, read: Read) => Promise<Result>,
  options: TransactionOptions & ReadAhead<Read> = {},
): Promise<Result> {
  let isBegun = false
  const begun = async (tx: Tx, reading: Promise<Read>): Promise<Ended<Result>> => {
    isBegun = true
    const toPublish: OutboxEntry[] = []
    const answers = collectAnswers(tx)
    entries.set(tx, toPublish)
    try {
      const result = await work(tx, await reading)
      const notifies = isAlone(writeStateOf(root))
      const sent = toPublish.length > 0 ? await sendEntries(tx, toPublish, { notifies }) : null
      if (sent !== null) await awaitedAtEnd(tx, sent.written)
      return { result, sent, answers, toDo: steps.get(tx) ?? [] }
    } catch (error) {
      // Statements behind one that failed are refused; the first failure says why.
      await Promise.all(answers)
      throw error
    }
  }
  try {
    const { result, written, toDo } = await underLocks(root, begun, options)
    runSteps(writeStateOf(root), toDo)
    if (written !== null) tellPublished(writeStateOf(root), written)
    return result
  } catch (error) {
    throw isBegun ? error : new NotBegunError(error)
  }
}

/** The result of a transaction, with what is done after its commit. */
interface Ended<Result> {
  result: Result
  sent: { written: Promise<readonly WrittenEntry[]> } | null
  answers: readonly Promise<unknown>[]
  toDo: readonly Step[]
}

type Committed<Result> = Omit<Ended<Result>, 'sent' | 'answers'> & { written: readonly WrittenEntry[] | null }

async function committed<Result>(transaction: Promise<Ended<Result>>): Promise<Committed<Result>> {
  const { sent, answers, ...ended } = await transaction
  // Fails where nothing was committed: PostgreSQL takes the commit of a failed transaction for its end, without an error.
  await Promise.all(answers)
  return { ...ended, written: sent === null ? null : await sent.written }
}

async function underLocks<Result, Read>(
  root: Knex,
  work: (tx: Tx, reading: Promise<Read>) => Promise<Ended<Result>>,
  { locks = [], below, lockMs, ahead = nothing<Read> }: TransactionOptions & ReadAhead<Read>,
): Promise<Committed<Result>> {
  const state = writeStateOf(root)
  const until = state.world.monotonic() + state.writeMs
  if (dialectOfDb(root) === 'sqlite')
    return repeat(state, until, () => committed(root.transaction((tx) => work(tx, ahead(tx)), untilConfig(until))))
  const leftMs = () => Math.max(1, Math.ceil(until - state.world.monotonic()))
  const level = below === undefined ? 'serializable' : 'read committed'
  const lockTimeout = lockMs === undefined ? '' : `; set local lock_timeout = ${lockMs}`
  const attempt = (before = '', connection?: unknown) => {
    let reading: Promise<Read>
    const config = {
      connection,
      begin: before + beginAt(level, leftMs()) + lockTimeout,
      releasesLocks: connection !== undefined,
      until,
      ahead(db: Askable) {
        reading = ahead(db)
        // The work looks at it, if it comes to that.
        reading.catch(() => undefined)
      },
    } satisfies BeginConfig & { connection: unknown }
    return committed(root.transaction((tx) => work(tx, reading), config as Knex.TransactionConfig))
  }
  if (locks.length === 0) return repeat(state, until, () => attempt())
  const release = await state.localLocks.acquire(locks, state.writeMs)
  try {
    const client = root.client as PostgresClient
    // The locks are taken in the round trip of the beginning.
    const takeLocks = () => `begin; set local statement_timeout = ${leftMs()}; ${acquireAdvisoryLocks(locks)} commit; `
    return await client.withLockHolder((connection) => repeat(state, until, () => attempt(takeLocks(), connection)))
  } finally {
    release()
  }
}

/** knex hands it to the transaction of our client. */
const untilConfig = (until: number) => ({ until }) as Knex.TransactionConfig

const nothing = <Read>(): Promise<Read> => Promise.resolve(undefined as Read)

/** A part of a transaction that is undone by itself when it fails. */
export function inSavepoint<Result>(tx: Tx, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  return tx.transaction(async (inner) => {
    entries.set(inner, [])
    const result = await work(inner)
    for (const entry of entries.get(inner) ?? []) await publish(tx, entry)
    for (const step of steps.get(inner) ?? []) afterCommit(tx, step)
    return result
  })
}

const beginAt = (level: string, ms: number) => `begin isolation level ${level}; set local statement_timeout = ${ms}`

async function repeat<Result>(state: WriteState, until: number, attempt: () => Promise<Result>): Promise<Result> {
  const { world, observers } = state
  for (let count = 1; ; count++) {
    try {
      return await attempt()
    } catch (error) {
      const cause = causeOf(error)
      if (cause === null) throw error
      const waitMs = world.random() * Math.min(500, 5 * 2 ** count)
      const most = cause === 'duplicate' ? maxOfDuplicates : maxAttempts
      const isLast = count >= most || world.monotonic() + waitMs >= until
      for (const observe of observers) observe(isLast ? 'given up' : 'again', cause)
      if (isLast) throw error
      await world.sleep(waitMs)
    }
  }
}

/** Returns why the work may end otherwise when it is done again; null: it would end as it did. */
function causeOf(error: unknown): Undone | null {
  if (!(error instanceof ApiError)) return undoneFor(error)
  // A row was not as it had been read; or a refusal of ours that says what the database refused.
  return error.code === 'transient_conflict' ? 'conflict' : undoneFor(error.options.cause)
}
