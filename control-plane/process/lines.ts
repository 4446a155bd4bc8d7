import type { Log } from './log.ts'

/**
 * Work of a service that stands in lines: the pieces of one line are done one after another, in the order in which they
 * came, and no line waits for another one. What writes in a workspace stands in the line of that workspace, by its id: it
 * may wait there for the workspace's turn (db/turns.ts) as long as a write may take, and those of others go on.
 *
 *   (no line) --add--> ready --a place is free--> at work --a piece is left--> ready
 *                                                    `-----none is left-----> (no line)
 *
 * Lines that are ready go to work in turn, a piece each, on a bounded number of places. A line waits for the turn of its
 * workspace on its place, but holds no connection meanwhile; so there are more places than connections, and who stalls as
 * many workspaces of their own as there are places holds all the connections already.
 */
type Piece = () => Promise<void>

const places = 32

export class Lines {
  private readonly log: Log
  private readonly failed: string
  /** What waits in each line; a line whose piece is at work is kept when nothing else waits in it. */
  private readonly lines = new Map<string, Map<unknown, Piece>>()
  private readonly ready = new Set<string>()
  private atWork = 0
  private whenIdle: (() => void)[] = []
  private stopped = true

  /** `failed`: what the log says of a piece that failed. */
  constructor(log: Log, failed: string) {
    this.log = log
    this.failed = failed
  }

  get isStopped(): boolean {
    return this.stopped
  }

  start(): void {
    this.stopped = false
  }

  /** What has not begun is left out; resolves when nothing is being done any more. */
  async stop(): Promise<void> {
    this.stopped = true
    await this.idle()
  }

  /** Resolves when nothing that was asked for, by a piece of work too, is still being done. */
  idle(): Promise<void> {
    return this.lines.size === 0 ? Promise.resolve() : new Promise((resolve) => this.whenIdle.push(resolve))
  }

  /** With a key, a piece that waits in the line already is not asked for twice. One that fails is logged. */
  add(line: string, piece: Piece, key: unknown = piece): void {
    const waiting = this.lines.get(line)
    if (waiting === undefined) {
      this.lines.set(line, new Map([[key, piece]]))
      this.ready.add(line)
      this.fillPlaces()
      return
    }
    if (!waiting.has(key)) waiting.set(key, piece)
  }

  private fillPlaces(): void {
    for (const line of this.ready) {
      if (this.atWork >= places) return
      this.ready.delete(line)
      this.atWork++
      void this.workOn(line)
    }
  }

  private async workOn(line: string): Promise<void> {
    // Leaves whoever asked for it, who may ask for more at once.
    await Promise.resolve()
    const waiting = this.lines.get(line) ?? new Map<unknown, Piece>()
    for (const [key, piece] of waiting) {
      waiting.delete(key)
      await this.work(piece, { line, ...(typeof key === 'string' && { key }) })
      break
    }
    this.atWork--
    if (waiting.size > 0) this.ready.add(line)
    else this.lines.delete(line)
    this.fillPlaces()
    if (this.lines.size === 0) for (const resolve of this.whenIdle.splice(0)) resolve()
  }

  private async work(piece: Piece, named: { line: string; key?: string }): Promise<void> {
    if (this.stopped) return
    try {
      await piece()
    } catch (error) {
      this.log.error({ err: error, ...named }, this.failed)
    }
  }
}
