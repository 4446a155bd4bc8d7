import type { Knex } from 'knex'
import type { World } from '../../../shared/lib/world.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { Log } from '../../process/log.ts'
import { EmbeddingTrouble, type EmbeddingClient } from './client.ts'
import { claimToEmbed, findDimensions, forgetOtherModels, postponeEmbedding, putVector, type ToEmbed } from './store.ts'

/**
 * Gives chunks their vectors, in the background of a sweep: takes a batch, asks the model, stores what it said, and takes the next
 * one until there is none.
 *
 * Replicas take different chunks. When the endpoint is away, all wait, twice as long after each time. A text that it refuses is
 * put off by a day, and does not hold up others; so is one at which it fails while it answers to others.
 */
const batchMs = 30_000
/** Longer than a batch takes: chunks of a replica that died are taken by others after this. */
const claimMs = 120_000
const refusedMs = 24 * 3_600_000
const firstWaitMs = 2_000
const maxWaitMs = 15 * 60_000

export class EmbeddingFiller {
  private readonly options: { root: Knex; client: EmbeddingClient; world: World; log: Log }
  private work: Promise<void> | null = null
  private readonly stopping = new AbortController()
  private knowsModel = false
  private failures = 0
  private waitsUntil = Number.NEGATIVE_INFINITY

  constructor(options: { root: Knex; client: EmbeddingClient; world: World; log: Log }) {
    this.options = options
  }

  /** Begins to work unless it does already, or waits for the endpoint. */
  begin(): void {
    const { world, log } = this.options
    if (this.work !== null || this.stopping.signal.aborted || world.monotonic() < this.waitsUntil) return
    this.work = this.fill()
      .then(() => void (this.failures = 0))
      .catch((error: unknown) => {
        if (this.stopping.signal.aborted) return
        const waitMs = Math.min(maxWaitMs, firstWaitMs * 2 ** this.failures++) * (0.5 + world.random() / 2)
        this.waitsUntil = world.monotonic() + waitMs
        log.warn({ err: error, waitMs }, 'texts could not be embedded')
      })
      .finally(() => void (this.work = null))
  }

  async idle(): Promise<void> {
    await this.work
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await this.work
  }

  private async fill(): Promise<void> {
    const { root, client, world } = this.options
    if (!this.knowsModel) {
      await inTransaction(root, (tx) => forgetOtherModels(tx, client.model))
      this.knowsModel = true
    }
    while (!this.stopping.signal.aborted) {
      const now = world.now()
      const batch = await claimToEmbed(root, { now, until: now + claimMs })
      if (batch.length === 0) return
      await this.embed(batch)
      this.failures = 0
    }
  }

  private async embed(batch: readonly ToEmbed[]): Promise<void> {
    try {
      await this.store(batch, await this.ask(batch))
    } catch (error) {
      const isOfTexts = error instanceof EmbeddingTrouble && error.kind !== 'away'
      // The trouble is with one of them, as a rule: each is asked alone.
      if (isOfTexts && (batch.length > 1 || error.kind === 'refused')) await this.embedEach(batch)
      else await this.giveBack(batch, error)
    }
  }

  private async embedEach(batch: readonly ToEmbed[]): Promise<void> {
    const failed: { chunk: ToEmbed; error: EmbeddingTrouble }[] = []
    let isThere = false
    for (const [at, chunk] of batch.entries()) {
      try {
        await this.store([chunk], await this.ask([chunk]))
        isThere = true
      } catch (error) {
        const isOfText = error instanceof EmbeddingTrouble && error.kind !== 'away'
        if (!isOfText) return this.giveBack([...failed.map((one) => one.chunk), ...batch.slice(at)], error)
        if (error.kind === 'failed') failed.push({ chunk, error })
        else await this.putOff(chunk, error)
      }
    }
    if (isThere) for (const { chunk, error } of failed) await this.putOff(chunk, error)
    else if (failed.length > 0)
      await this.giveBack(
        failed.map(({ chunk }) => chunk),
        failed[0]!.error,
      )
  }

  private async putOff(chunk: ToEmbed, error: EmbeddingTrouble): Promise<void> {
    const { root, world, log } = this.options
    log.warn({ err: error, chunk: chunk.id }, 'a text is refused by the model for embeddings')
    await postponeEmbedding(root, [chunk.id], world.now() + refusedMs)
  }

  /** Behind all others, since it may be one of these texts at which the endpoint fails. Always fails, with the error. */
  private async giveBack(batch: readonly ToEmbed[], error: unknown): Promise<never> {
    const { root, world } = this.options
    await postponeEmbedding(
      root,
      batch.map(({ id }) => id),
      world.now(),
    )
    throw error
  }

  private ask(batch: readonly ToEmbed[]): Promise<Float32Array[]> {
    return this.options.client.embed(batch.map(textOf), { timeoutMs: batchMs, signal: this.stopping.signal })
  }

  private async store(batch: readonly ToEmbed[], vectors: readonly Float32Array[]): Promise<void> {
    const { root, client } = this.options
    const dimensions = await findDimensions(root, client.model)
    const found = vectors[0]?.length
    if (dimensions !== null && found !== dimensions)
      throw new EmbeddingTrouble(`the model has ${found} dimensions now, and had ${dimensions}`)
    const rows = batch.map(({ workspaceId, digest }, index) => ({ workspaceId, digest, vector: vectors[index]! }))
    for (const [workspaceId, ofWorkspace] of Map.groupBy(rows, (row) => row.workspaceId))
      await inTransaction(
        root,
        async (tx) => {
          for (const row of ofWorkspace) await putVector(tx, { ...row, model: client.model })
        },
        { locks: [workspaceId] },
      )
  }
}

const textOf = ({ title, heading, body }: ToEmbed): string => `${title}\n${heading}\n\n${body}`
