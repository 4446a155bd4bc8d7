import type { Log } from './log.ts'

/**
 * Runs the work of a service in lines: the pieces of one line are done one after another in order of arrival, and no
 * line waits for another one. Writes to a workspace are in the line of that workspace, by its id. They may wait there for
 * the workspace's turn (db/turns.ts) as long as a write may take, while other lines go on.
 *
 *   (no line) --add--> ready --a place is free--> at work --a piece is left--> ready
 *                                                    `-----none is left-----> (no line)
 *
 * Ready lines take turns, one piece each, on a bounded number of places. A line keeps its place while it waits for the
 * turn of its workspace, but holds no connection. So there are more places than connections, and whoever stalls as many
 * workspaces as there are places holds all the connections already.
 */
type Piece = () => Promise<void>

const places = 32

export class Lines {
  private readonly log: Log
  private readonly failed: string
  /** The waiting pieces of each line; a line whose last piece is being done stays here, empty. */
  private readonly lines = new Map<string, Map<unknown, Piece>>()
  private readonly ready = new Set<string>()
  private atWork = 0
  private whenIdle: (() => void)[] = []
  private stopped = true

  /** `failed`: the log message for a failed piece. */
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

  /** Drops pieces that have not begun; resolves when no piece is being done any more. */
  async stop(): Promise<void> {
    this.stopped = true
    await this.idle()
  }

  /** Resolves when all requested pieces are done, including those that pieces request. */
  idle(): Promise<void> {
    return this.lines.size === 0 ? Promise.resolve() : new Promise((resolve) => this.whenIdle.push(resolve))
  }

  /** With a key, a piece that already waits in the line is not added twice. A failed piece is logged. */
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
    // Returns to the caller first, which may add more pieces at once.
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
