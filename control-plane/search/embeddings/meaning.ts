import type { WikiPageId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import type { Log } from '../../process/log.ts'
import { EmbeddingTrouble, type EmbeddingClient } from './client.ts'
import { SignCodes } from './codes.ts'
import { listPlaces, listVectors } from './store.ts'
import { codeOf, similarity, vectorOfBytes } from './vectors.ts'

/** A page that is about what was asked for, and its chunk that is most so. */
export interface Near {
  subject: WikiPageId
  size: number
  ord: number
}

/** A search does not wait longer for the model. */
const waitMs = 1_000
/** The time for which nobody asks an endpoint that was not there: each search would wait in vain. */
const pauseMs = 10_000
/** Vectors that are compared exactly. */
const compared = 200
/** Pages of one search. What is far from all others is about something else. */
const most = 50
const least = 0.2
const ofBest = 0.7
/** Texts whose vectors are remembered, for the next page of the same search. */
const maxRemembered = 200

/** Finds pages by what they are about, as long as the model answers in time. */
export class Meaning {
  private readonly client: EmbeddingClient
  private readonly world: Pick<World, 'monotonic' | 'after'>
  private readonly log: Log
  private readonly codes: SignCodes
  private readonly remembered = new Map<string, Float32Array>()
  private pausedUntil = Number.NEGATIVE_INFINITY

  constructor(options: { client: EmbeddingClient; world: Pick<World, 'monotonic' | 'after'>; log: Log }) {
    this.client = options.client
    this.world = options.world
    this.log = options.log
    this.codes = new SignCodes({ world: options.world, model: options.client.model })
  }

  get model(): string {
    return this.client.model
  }

  /** Lists the nearest pages, nearest first; none when the model is away. */
  async find(db: Db, { workspaceId, text }: { workspaceId: WorkspaceUuid; text: string }): Promise<Near[]> {
    const vector = await this.vectorOf(text)
    if (vector === null) return []
    const near = await this.codes.nearestTo(db, { workspaceId, code: codeOf(vector), most: compared })
    const rows = await listVectors(db, { workspaceId, digests: near })
    const scores = rows
      .filter((row) => row.vector.byteLength === vector.length * 4)
      .map((row) => ({ digest: row.digest, score: similarity(vector, vectorOfBytes(row.vector)) }))
      .toSorted((a, b) => b.score - a.score || (a.digest < b.digest ? -1 : 1))
    const best = scores[0]?.score ?? 0
    const digests = scores.filter(({ score }) => score >= Math.max(least, best * ofBest)).map(({ digest }) => digest)
    const places = Map.groupBy(await listPlaces(db, { workspaceId, digests }), ({ digest }) => digest)
    const bySubject = new Map<WikiPageId, Near>()
    for (const { subject, size, ord } of digests.flatMap((digest) => places.get(digest) ?? []))
      if (!bySubject.has(subject) && bySubject.size < most) bySubject.set(subject, { subject, size, ord })
    return [...bySubject.values()]
  }

  private async vectorOf(text: string): Promise<Float32Array | null> {
    const known = this.remembered.get(text)
    if (known !== undefined) return known
    if (this.world.monotonic() < this.pausedUntil) return null
    try {
      const [vector] = await this.client.embed([text], { timeoutMs: waitMs })
      if (this.remembered.size >= maxRemembered) this.remembered.delete(this.remembered.keys().next().value ?? '')
      this.remembered.set(text, vector!)
      return vector!
    } catch (error) {
      // An endpoint that answers does not like this text: whoever sends it must not take the model from all others.
      const isOfText = error instanceof EmbeddingTrouble && error.kind !== 'away'
      if (!isOfText) this.pausedUntil = this.world.monotonic() + pauseMs
      this.log.warn({ err: error }, 'the model for embeddings gave no answer: words alone are searched')
      return null
    }
  }
}
