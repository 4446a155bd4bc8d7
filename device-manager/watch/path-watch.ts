import { basename, join, resolve } from 'node:path'
import type { FSWatcher, watch } from 'chokidar'
import { z } from 'zod'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'

export interface PathWatchOptions {
  world: Pick<World, 'after'>
  log: Log
  /** The path may have changed since the last call; null: each may have, since the watch began. */
  changed(path: string | null): void
  /** Loads the library, which a daemon without anything to watch never does. */
  load?: () => Promise<typeof watch>
}

/** Of its event `raw`: the path at which it asked the system to watch. */
const rawDetails = z.object({ watchedPath: z.string() })

/** A hint that comes late is worth more than a system without room for other programs' watches. */
export const maxPaths = 256

/** After the system refused a watch. */
const retryMs = 10 * 60_000

/**
 * Tells that something happened to one of a few paths, and never looks below a folder. It is a hint only: whoever owns it
 * also looks by the clock, and goes on with that alone where the system refuses to watch.
 */
export class PathWatch {
  private readonly options: PathWatchOptions
  private wanted: readonly string[] = []
  private watcher: FSWatcher | null = null
  /** Counts the changes of `wanted`; an earlier one that is still loading gives up. */
  private turn = 0
  private isRefused = false
  private isOn = false
  private cancelRetry: (() => void) | null = null

  constructor(options: PathWatchOptions) {
    this.options = options
  }

  /** Whether a change of each path that is watched would be told of. */
  get isReady(): boolean {
    return this.isOn
  }

  /** Watches these from now on and no others; the first ones where they are too many. */
  watch(paths: readonly string[]): void {
    const wanted = [...new Set(paths.map((path) => resolve(path)))].slice(0, maxPaths).toSorted()
    if (wanted.join('\0') === this.wanted.join('\0')) return
    this.wanted = wanted
    if (this.cancelRetry === null) void this.begin()
  }

  async stop(): Promise<void> {
    this.turn++
    this.cancelRetry?.()
    await this.close()
  }

  private async begin(): Promise<void> {
    const turn = ++this.turn
    try {
      await this.close()
      const { wanted } = this
      if (wanted.length === 0) return
      const load = this.options.load ?? (async () => (await import('chokidar')).watch)
      const start = await load()
      if (turn !== this.turn) return
      const watcher = start([...wanted], settingsFor(wanted))
      this.watcher = watcher
      watcher.on('error', (error) => this.refused(turn, error))
      watcher.on('all', (_, path) => this.options.changed(path))
      // What went and came back at once is nothing to the library, but what the system said of it is.
      watcher.on('raw', (_, name: string | null, details) => {
        const { watchedPath } = rawDetails.parse(details)
        if (name === null || name === basename(watchedPath)) this.options.changed(watchedPath)
      })
      watcher.on('ready', () => {
        if (this.isRefused) this.options.log.info({}, 'folders and sign-ins are watched again')
        this.isRefused = false
        this.isOn = this.watcher === watcher
        this.options.changed(null)
      })
    } catch (error) {
      this.refused(turn, error)
    }
  }

  private refused(turn: number, error: unknown): void {
    if (turn !== this.turn) return
    this.turn++
    const { log, world } = this.options
    if (!this.isRefused)
      log.warn({ err: error }, 'folders and sign-ins cannot be watched; they are looked at each minute')
    this.isRefused = true
    void this.close()
    this.cancelRetry = world.after(retryMs, () => {
      this.cancelRetry = null
      void this.begin()
    })
  }

  private async close(): Promise<void> {
    const { watcher } = this
    this.watcher = null
    this.isOn = false
    // Its error would be one of a watch that nobody needs any more.
    await watcher?.close().catch(() => undefined)
  }
}

function settingsFor(wanted: readonly string[]) {
  // A folder that is moved tells of it under its own name, as if of a file in it.
  const told = new Set(wanted.flatMap((path) => [path, join(path, basename(path))]))
  return {
    ignored: (path: string) => !told.has(path),
    depth: 0,
    ignoreInitial: true,
    followSymlinks: false,
    ignorePermissionErrors: true,
    atomic: false,
    persistent: false,
    backend: 'native' as const,
    // A person's variable may make the library poll, for all programs.
    pollingInterval: 2_000,
    pollingBinaryInterval: 2_000,
  }
}
