import type { WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import { listCodes, type CodeRow } from './store.ts'
import { nearest, readCode } from './vectors.ts'

/**
 * The sign codes of workspaces, in memory from their first search on. Before each search what came since is added. What was
 * removed stays until all is read again: whoever takes the nearest ones looks in the database what is left of them. So does
 * what a transaction stored under a lower number than another that ended before it.
 */
const readAgainMs = 10 * 60_000
const pageSize = 5_000
/** The bytes of the codes of all workspaces; those that were searched longest ago are forgotten first. */
const maxBytes = 64 * 1024 * 1024

interface Held {
  digests: string[]
  /** The codes one after another; with room for more. */
  codes: Uint32Array
  words: number
  last: number
  readAt: number
}

export class SignCodes {
  private readonly world: Pick<World, 'monotonic'>
  private readonly model: string
  /** The workspace that was searched last is the last one. */
  private readonly held = new Map<string, Held>()
  private readonly reading = new Map<string, Promise<Held>>()

  constructor({ world, model }: { world: Pick<World, 'monotonic'>; model: string }) {
    this.world = world
    this.model = model
  }

  /** Digests of the texts that are nearest to this code, nearest first; none when the model says another length now. */
  async nearestTo(
    db: Db,
    { workspaceId, code, most }: { workspaceId: WorkspaceUuid; code: Uint32Array; most: number },
  ) {
    const { digests, codes, words } = await this.read(db, workspaceId)
    if (words !== code.length) return []
    return nearest(code, { codes, count: digests.length, most }).map((place) => digests[place]!)
  }

  /** Whoever asks meanwhile waits for the same. */
  private read(db: Db, workspaceId: WorkspaceUuid): Promise<Held> {
    const reading = this.reading.get(workspaceId)
    if (reading !== undefined) return reading
    const started = this.readNew(db, workspaceId).finally(() => this.reading.delete(workspaceId))
    this.reading.set(workspaceId, started)
    return started
  }

  private async readNew(db: Db, workspaceId: WorkspaceUuid): Promise<Held> {
    const now = this.world.monotonic()
    const known = this.held.get(workspaceId)
    const isFresh = known !== undefined && now - known.readAt < readAgainMs
    const held = isFresh ? known : { digests: [], codes: new Uint32Array(0), words: 0, last: 0, readAt: now }
    for (;;) {
      const rows = await listCodes(db, { workspaceId, model: this.model, after: held.last, limit: pageSize })
      for (const row of rows) add(held, row)
      if (rows.length < pageSize) break
    }
    this.held.delete(workspaceId)
    this.held.set(workspaceId, held)
    this.forgetOldest()
    return held
  }

  private forgetOldest(): void {
    let bytes = [...this.held.values()].reduce((sum, { codes }) => sum + codes.byteLength, 0)
    for (const [workspaceId, { codes }] of this.held) {
      if (bytes <= maxBytes) return
      bytes -= codes.byteLength
      this.held.delete(workspaceId)
    }
  }
}

function add(held: Held, { id, digest, code }: CodeRow): void {
  held.last = id
  const words = code.byteLength / 4
  if (held.words === 0) held.words = words
  // Codes of one model are all alike, unless its endpoint changed behind its name.
  if (words !== held.words) return
  const at = held.digests.length * words
  if (at + words > held.codes.length) {
    const larger = new Uint32Array(Math.max(64 * words, held.codes.length * 2))
    larger.set(held.codes)
    held.codes = larger
  }
  readCode(code, held.codes, at)
  held.digests.push(digest)
}
