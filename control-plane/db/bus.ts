import { EventEmitter } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Knex } from 'knex'
import pg from 'pg'
import {
  channel,
  type Topic,
  type TopicRow,
  type WrittenEntry,
  listOutbox,
  outboxEnd,
  type OutboxCursor,
  type OutboxRow,
} from './outbox.ts'
import type { Dialect } from './dialect.ts'
import { endWhenSilent, keepAlive } from './silence.ts'
import { writeStateOf } from './transaction.ts'
import type { World } from '../../shared/lib/world.ts'

/**
 * Carries happenings from where they were committed to whoever acts on them: the outbox table is the truth, a wake-up
 * (in-process, or LISTEN/NOTIFY between replicas) only makes it quick, and a slow tick reads what a lost wake-up missed. On
 * PostgreSQL a process gives out at once what it committed itself, and leaves that out when it reads it. It wakes the others
 * after the commit, on the connection on which it listens: transactions that notify are committed one at a time.
 *
 * Signals are wake-ups without a row, for followers that read the truth elsewhere (the frames of a run).
 */
export interface Bus {
  start(): Promise<void>
  stop(): Promise<void>
  /** Reads the outbox soon. What publishes need not call it: the bus hears of each commit that published. */
  poke(): void
  on<Of extends Topic>(topic: Of, handler: (row: TopicRow<Of>) => void): () => void
  /** Tells every replica's followers of `key` to look again. Call after the commit. */
  signal(key: string): void
  onSignal(key: string, handler: () => void): () => void
  /** How long ago (ms) this process last had read the outbox to its end. */
  lagMs(): number
}

export interface BusOptions {
  root: Knex
  dialect: Dialect
  databaseUrl: string
  world: World
  log: { warn(fields: object, message: string): void }
  tickMs?: number
  /** The limit of silence, as for the pool; see `DatabaseOptions`. */
  silentMs: number
  /** Is told when somebody failed at an entry, and when it is given up for that. */
  onFailed?: (end: 'again' | 'given_up') => void
}

const signalChannel = 'svc_signal'
/** An entry is given to whoever failed at it so often in all, once a tick. What acts on entries also looks at the state itself by time. */
const mostAttempts = 5
/** Failures that are kept to be tried again. Beyond this number the oldest are given up. */
const mostFailed = 1_000
/** The time that a stop waits for a database that does not answer. */
const lastWordsMs = 1_000
const notify = 'select pg_notify(channel, key) from unnest($1::text[], $2::text[]) as told (channel, key)'

type Handler = (row: OutboxRow) => void

interface Failed {
  row: OutboxRow
  handler: Handler
  attempts: number
}

export function createBus(options: BusOptions): Bus {
  return new OutboxBus(options)
}

class OutboxBus implements Bus {
  private readonly options: BusOptions
  private readonly topics = new EventEmitter()
  private readonly signals = new EventEmitter()
  private cursor: OutboxCursor = { from: 0, given: new Map(), seq: 0 }
  private reading: Promise<void> | null = null
  private again = false
  private stopped = true
  private cancelTick: (() => void) | null = null
  private listener: pg.Client | null = null
  private isConnecting = false
  private pendingSignals = new Set<string>()
  /** True: something was committed of which the others were not told. */
  private hasNews = false
  /** Resolves when the others were told of everything. */
  private telling: Promise<void> | null = null
  /** Entries at which handlers threw, to be tried again. */
  private failed: Failed[] = []
  /** The numbers of entries that were given out as they were committed, and that were not read from the outbox yet. */
  private readonly givenOut = new Set<number>()
  /** When (monotonic) a look began that found no more. */
  private readToEndAt: number
  private readonly published = (written: readonly WrittenEntry[]) => {
    if (written.length === 0) return this.poke()
    this.tellOthers(() => (this.hasNews = true))
    this.giveOut(written)
  }

  constructor(options: BusOptions) {
    this.options = options
    this.readToEndAt = options.world.monotonic()
    this.topics.setMaxListeners(0)
    this.signals.setMaxListeners(0)
  }

  async start(): Promise<void> {
    if (!this.stopped) return
    this.stopped = false
    writeStateOf(this.options.root).onPublished.add(this.published)
    this.givenOut.clear()
    this.readToEndAt = this.options.world.monotonic()
    this.cursor = await outboxEnd(this.options.root)
    if (this.options.dialect === 'postgres') await this.listen()
    this.tick()
  }

  async stop(): Promise<void> {
    this.stopped = true
    writeStateOf(this.options.root).onPublished.delete(this.published)
    this.cancelTick?.()
    await this.toldOrLate()
    const listener = this.listener
    this.listener = null
    await listener?.end().catch(() => undefined)
    await this.reading
  }

  poke(): void {
    if (this.stopped) return
    if (this.reading) {
      this.again = true
      return
    }
    this.reading = this.read().finally(() => {
      this.reading = null
      if (this.again) {
        this.again = false
        this.poke()
      }
    })
  }

  on<Of extends Topic>(topic: Of, handler: (row: TopicRow<Of>) => void): () => void {
    this.topics.on(topic, handler)
    return () => this.topics.off(topic, handler)
  }

  signal(key: string): void {
    this.signals.emit(key)
    this.tellOthers(() => this.pendingSignals.add(key))
  }

  onSignal(key: string, handler: () => void): () => void {
    this.signals.on(key, handler)
    return () => this.signals.off(key, handler)
  }

  lagMs(): number {
    return this.options.world.monotonic() - this.readToEndAt
  }

  private get hasPending(): boolean {
    return this.hasNews || this.pendingSignals.size > 0
  }

  /** Sends one NOTIFY for each key and turn of the event loop, however much was stored in it. Without a connection the others look again by themselves. */
  private tellOthers(note: () => void): void {
    if (!this.listener) return
    note()
    this.telling ??= this.tell()
  }

  /** Sends one query at a time. What comes while one is under way goes with the next. */
  private async tell(): Promise<void> {
    await nextTurn()
    while (this.hasPending && this.listener) {
      const told = [...this.pendingSignals].map((key) => [signalChannel, key])
      if (this.hasNews) told.unshift([channel, ''])
      this.forgetPending()
      const [channels, keys] = [told.map(([to]) => to), told.map(([, key]) => key)]
      try {
        await this.listener.query({ name: 'svc_notify', text: notify, values: [channels, keys] })
      } catch (error) {
        this.options.log.warn({ err: error }, 'other replicas were not told of news')
      }
    }
    this.forgetPending()
    this.telling = null
  }

  /** Resolves when the others know all, or once it has taken too long: what is not told by then they find by themselves. */
  private async toldOrLate(): Promise<void> {
    if (this.telling === null) return
    let cancel = () => {}
    const late = new Promise<void>((resolve) => (cancel = this.options.world.after(lastWordsMs, resolve)))
    await Promise.race([this.telling, late])
    cancel()
  }

  private forgetPending(): void {
    this.pendingSignals.clear()
    this.hasNews = false
  }

  /** Gives out what this process published itself, which saves a query on the way to the handlers. */
  private giveOut(written: readonly WrittenEntry[]): void {
    const { from, given } = this.cursor
    for (const { seq, xid, topic, key, payload = {} } of written) {
      // A query that ended meanwhile may have read it.
      if (this.stopped || xid < from || given.has(seq)) continue
      this.givenOut.add(seq)
      this.give({ seq, topic, key, payload })
    }
  }

  /** Gives the entry to each handler by itself: a handler that fails keeps no other one, and no entry that follows, from being acted on. */
  private give(row: OutboxRow): void {
    for (const handler of this.topics.listeners(row.topic))
      this.tryOnce({ row, handler: handler as Handler, attempts: 1 })
  }

  private tryOnce({ row, handler, attempts }: Failed): void {
    try {
      handler(row)
    } catch (error) {
      const { seq, topic, key } = row
      const fields = { err: error, seq, topic, key, attempts }
      this.options.onFailed?.(attempts === mostAttempts ? 'given_up' : 'again')
      if (attempts === mostAttempts) return this.options.log.warn(fields, 'an entry of the outbox is given up')
      this.options.log.warn(fields, 'an entry of the outbox was not acted on')
      this.failed.push({ row, handler, attempts: attempts + 1 })
      if (this.failed.length > mostFailed) this.failed.shift()
    }
  }

  private tryAgain(): void {
    const failed = this.failed
    this.failed = []
    for (const each of failed) if (this.topics.listeners(each.row.topic).includes(each.handler)) this.tryOnce(each)
  }

  private async read(): Promise<void> {
    try {
      for (;;) {
        const began = this.options.world.monotonic()
        const page = await listOutbox(this.options.root, this.cursor, 500)
        this.cursor = page.next
        for (const row of page.rows) if (!this.givenOut.delete(row.seq)) this.give(row)
        if (!page.hasMore) this.readToEndAt = began
        if (this.stopped) return
        if (!page.hasMore) return
      }
    } catch (error) {
      this.options.log.warn({ err: error }, 'the outbox could not be read')
    }
  }

  private tick(): void {
    this.cancelTick = this.options.world.after(this.options.tickMs ?? 2_000, () => {
      if (this.stopped) return
      this.tryAgain()
      this.poke()
      if (this.options.dialect === 'postgres' && !this.listener && !this.isConnecting) void this.listen()
      this.tick()
    })
  }

  private async listen(): Promise<void> {
    this.isConnecting = true
    const { databaseUrl: connectionString, silentMs } = this.options
    const name = { application_name: 'svc-server-bus' }
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: silentMs, ...name, ...keepAlive })
    // Notifications that were sent while not connected are lost: after each (re)connect the outbox is read and followers look again.
    client.on('error', (error) => {
      this.options.log.warn({ err: error }, 'the notification connection was lost')
      if (this.listener === client) this.listener = null
    })
    client.on('notification', (message) => {
      // This process has given out already what it tells the others itself.
      if (message.processId === (client as pg.Client & { processID: number }).processID) return
      if (message.channel === channel) return this.poke()
      if (message.payload) this.signals.emit(message.payload)
    })
    try {
      await client.connect()
      endWhenSilent(client, silentMs)
      await client.query(`listen ${channel}`)
      await client.query(`listen ${signalChannel}`)
      // The bus was stopped meanwhile, and nobody else would end the client.
      if (this.stopped) return await client.end()
      this.listener = client
      for (const key of this.signals.eventNames()) this.signals.emit(key)
      this.poke()
    } catch (error) {
      this.options.log.warn({ err: error }, 'cannot listen for notifications')
      await client.end().catch(() => undefined)
    } finally {
      this.isConnecting = false
    }
  }
}
