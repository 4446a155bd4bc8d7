import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'
import { fingerprintOf, watchPoints } from './fingerprint.ts'
import { Paced } from './paced.ts'
import { PathWatch } from './path-watch.ts'
import type { Patience } from './patience.ts'
import { whyUnwatchable } from './watchable.ts'

export interface WatchOptions {
  world: World
  log: Log
  patience: Patience
  /**
   * These subjects may have changed. The next look waits for it; must not reject. Resolves those of them that were found out
   * about meanwhile.
   */
  changed(subjects: readonly string[]): Promise<readonly string[]>
}

/** The interval at which everything is looked at although nothing told of a change: network file systems, folders further up. */
const checkMs = 60_000

interface Subject {
  paths: readonly string[]
  /** The fingerprint of each path, as it was seen last; null: it counts as changed at the next look. */
  prints: ReadonlyMap<string, string> | null
}

interface Seen {
  prints: ReadonlyMap<string, string>
  points: string[]
}

/**
 * Says which of its subjects changed, by fingerprints of a few paths of each: soon after the system told of a change, and
 * each minute. A subject that is new counts as changed, and so does one of whose path the system told, or that may have changed
 * while it was found out about: a folder that was away for that moment only has the fingerprints of before, and would be taken for
 * missing for good.
 */
export class Watch {
  private readonly options: WatchOptions
  private readonly subjects = new Map<string, Subject>()
  /** Paths that may be watched, or may not; of those that are of use. */
  private verdicts = new Map<string, boolean>()
  private readonly checks: Paced
  private readonly paths: PathWatch
  private cancelCheck: (() => void) | null = null
  /** Counts what the system told. */
  private told = 0
  /** Subjects that were found out about while the system would not have told of a change. */
  private readonly unwatched = new Set<string>()
  /** The subjects that a path which is watched belongs to. */
  private owners = new Map<string, Set<string>>()

  constructor(options: WatchOptions) {
    const { world, log } = options
    this.options = options
    this.checks = new Paced({ world, soonMs: 100, gapMs: 500, maxGapMs: 500, act: () => this.check() })
    this.paths = new PathWatch({ world, log, changed: (path) => this.hear(path) })
  }

  /** Null: it is of no interest any more. */
  set(subject: string, paths: readonly string[] | null): void {
    const before = this.subjects.get(subject)
    if (paths?.join('\0') === before?.paths.join('\0')) return
    if (paths === null) this.subjects.delete(subject)
    else this.subjects.set(subject, { paths, prints: before?.prints ?? null })
    this.checks.ask()
  }

  /** The subject counts as changed at the next look, within the minute. */
  recheck(subject: string): void {
    const known = this.subjects.get(subject)
    if (known !== undefined) this.subjects.set(subject, { ...known, prints: null })
  }

  async stop(): Promise<void> {
    this.checks.stop()
    this.cancelCheck?.()
    await this.paths.stop()
  }

  private async check(): Promise<boolean> {
    const changed: string[] = []
    const points: string[] = []
    const owners = new Map<string, Set<string>>()
    for (const [name, subject] of Array.from(this.subjects)) {
      const seen = await this.options.patience.wait(name, () => see(subject.paths))
      // A subject that hangs has changed, too, and nothing of it may be touched again.
      const hung = { prints: new Map(subject.paths.map((path) => [path, 'hangs'])), points: [] }
      const { prints, points: own } = seen ?? hung
      const { prints: before } = subject
      if (before === null || subject.paths.some((path) => prints.get(path) !== before.get(path))) {
        changed.push(name)
        for (const point of own) this.verdicts.delete(point)
      }
      if (this.subjects.get(name) === subject) this.subjects.set(name, { ...subject, prints })
      points.push(...own)
      for (const point of own) owners.set(point, (owners.get(point) ?? new Set()).add(name))
    }
    this.owners = owners
    this.paths.watch(await this.watchable(points))
    if (changed.length > 0) await this.findOut(changed)
    this.cancelCheck?.()
    this.cancelCheck = this.subjects.size === 0 ? null : this.options.world.after(checkMs, () => this.checks.ask())
    return changed.length > 0
  }

  /** Whatever the system tells of a subject's own path, that path may be as it was before once it is looked at. */
  private hear(path: string | null): void {
    this.told++
    for (const name of (path === null ? null : this.owners.get(path)) ?? []) this.recheck(name)
    if (this.paths.isReady) {
      for (const name of this.unwatched) this.recheck(name)
      this.unwatched.clear()
    }
    this.checks.ask()
  }

  private async findOut(changed: readonly string[]): Promise<void> {
    const { told } = this
    const isWatched = this.paths.isReady
    for (const name of await this.options.changed(changed)) {
      const isOther = await this.isOther(name)
      if (isOther || told !== this.told) {
        this.recheck(name)
        this.checks.ask()
      } else if (!isWatched) this.unwatched.add(name)
    }
  }

  /** Whether a path of the subject is another one than at the look. */
  private async isOther(name: string): Promise<boolean> {
    const subject = this.subjects.get(name)
    if (subject?.prints == null) return false
    const { paths, prints } = subject
    const seen = await this.options.patience.wait(name, () => see(paths))
    return seen !== null && paths.some((path) => prints.has(path) && prints.get(path) !== seen.prints.get(path))
  }

  private async watchable(points: readonly string[]): Promise<string[]> {
    const verdicts = new Map<string, boolean>()
    for (const point of points) verdicts.set(point, this.verdicts.get(point) ?? (await this.mayWatch(point)))
    this.verdicts = verdicts
    return points.filter((point) => verdicts.get(point))
  }

  private async mayWatch(path: string): Promise<boolean> {
    const { patience, log } = this.options
    // The words of a path that hangs, or cannot be reached, are for nobody. One that has gone since it was looked at, which
    // nothing tells of, is looked at again.
    const why = await patience
      .wait(path, async () => (await whyUnwatchable(path)) ?? '')
      .catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' || error.code === 'ENOTDIR') this.checks.ask()
        return null
      })
    if (why) log.info({ path, why }, 'looked at each minute, since it cannot be watched')
    return why === ''
  }
}

async function see(paths: readonly string[]): Promise<Seen> {
  const prints = new Map<string, string>()
  const points: string[] = []
  for (const path of paths) {
    prints.set(path, await fingerprintOf(path))
    points.push(...(await watchPoints(path)))
  }
  return { prints, points }
}
