import { utimesSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import type { OfferedSkill, UnavailableReason } from '../../shared/runs/skills.ts'
import type { Log } from '../log/log.ts'
import { isDiskFull } from '../process/system-trouble.ts'
import { keptIn, readList, WrongBundleError } from './kept-bundle.ts'

export interface BundleCacheOptions {
  /** Its folder: of the daemon alone. */
  folder: string
  world: World
  log: Log
  server: string
  token(): string
  /** Hashes of bundles that runs are about to be given: none of them is removed. */
  wanted: () => ReadonlySet<string>
  /** More than these bytes are not kept: what was used longest ago goes first. */
  maxBytes?: number
  /** A run waits for its skills no longer. What is still on its way then is there for the next run. */
  waitMs?: number
}

const usual = { maxBytes: 512 * 1024 * 1024, waitMs: 20_000 } as const
/** A download that takes longer is given up. */
const downloadMs = 120_000
const atOnce = 4
const unfinished = /^\.new-/

/** Why a bundle is not there, in a word for the control plane. */
export interface MissedBundle {
  bundleHash: string
  reason: UnavailableReason
  /** The disk has no room for it. The run is told; the control plane is not, since it cannot mend that. */
  isDiskFull?: true
}

type Trouble = Omit<MissedBundle, 'bundleHash'>

export interface PlacedBundles {
  /** Those of which the control plane is told that they are there. */
  placed: readonly string[]
  missed: readonly MissedBundle[]
}

/**
 * The files of skills of the workspace on this device, by their hashes. Runs get copies of them: nothing that a run does to
 * its skills reaches another run.
 *
 *     (none) --download--> .new-<n> --all is on the disk--> <hash> --more than the limit, unused for longest--> (none)
 *
 * May interleave: several runs want the same bundle, and wait for one download; a run stops waiting while it goes on; the
 * process dies, and the next one removes what is unfinished; a host finds a bundle changed and removes it.
 */
export class BundleCache {
  readonly #options: BundleCacheOptions
  /** Downloads under way, by hash; null: it is there. */
  readonly #coming = new Map<string, Promise<Trouble | null>>()
  readonly #stopping = new AbortController()
  #places = atOnce
  readonly #waiting: (() => void)[] = []
  #tidied: Promise<void> | null = null
  #count = 0

  constructor(options: BundleCacheOptions) {
    this.#options = options
  }

  get folder(): string {
    return this.#options.folder
  }

  stop(): void {
    this.#stopping.abort()
  }

  /** Resolves when the skills are there or it is known which are not; never later than the time for which a run waits. Never fails. */
  async place(skills: readonly Pick<OfferedSkill, 'bundleHash' | 'isMissed'>[]): Promise<PlacedBundles> {
    const { world, waitMs = usual.waitMs } = this.#options
    const late = Promise.withResolvers<Trouble>()
    const cancel = world.after(waitMs, () => late.resolve({ reason: 'not_materialized' }))
    const found = await Promise.all(
      skills.map(async ({ bundleHash, isMissed }) => {
        const trouble = await Promise.race([this.#have(bundleHash), late.promise])
        return { bundleHash, isMissed, trouble }
      }),
    )
    cancel()
    return {
      placed: found.flatMap(({ bundleHash, isMissed, trouble }) => (trouble === null && isMissed ? [bundleHash] : [])),
      missed: found.flatMap(({ bundleHash, trouble }) => (trouble === null ? [] : [{ bundleHash, ...trouble }])),
    }
  }

  async #have(hash: string): Promise<Trouble | null> {
    const coming = this.#coming.get(hash)
    if (coming !== undefined) return coming
    if (this.#isKept(hash)) return null
    const download = this.#download(hash).finally(() => this.#coming.delete(hash))
    this.#coming.set(hash, download)
    return download
  }

  /** Notes that it is used, too. */
  #isKept(hash: string): boolean {
    try {
      const now = this.#options.world.now() / 1_000
      utimesSync(keptIn(this.#options.folder, hash).root, now, now)
      return true
    } catch {
      return false
    }
  }

  async #download(hash: string): Promise<Trouble | null> {
    const { folder: bundles, server, log } = this.#options
    await this.#turn()
    try {
      this.#tidied ??= this.#tidy()
      await this.#tidied.catch((error: unknown) => {
        this.#tidied = null
        throw error
      })
      const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(downloadMs)])
      const temporary = `.new-${++this.#count}`
      // Loaded when it is needed: most devices are idle.
      const { downloadBundle } = await import('./download.ts')
      const token = this.#options.token()
      const bytes = await downloadBundle({ bundles, hash, server, token, temporary, signal })
      log.info({ hash, bytes }, 'a skill was brought to this device')
      await this.#makeRoom().catch((error: unknown) => log.warn({ err: error }, 'old skills could not be removed'))
      return null
    } catch (error) {
      const isWrong = error instanceof WrongBundleError
      log.warn({ hash, err: error }, 'a skill could not be brought to this device')
      if (isWrong) return { reason: 'bundle_unreadable' }
      return { reason: 'not_materialized', ...(isDiskFull(error) && { isDiskFull: true as const }) }
    } finally {
      this.#places++
      this.#waiting.shift()?.()
    }
  }

  async #turn(): Promise<void> {
    while (this.#places === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#places--
  }

  /** A process before this one was killed in the middle of a download. */
  async #tidy(): Promise<void> {
    const { folder } = this.#options
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const name of await readdir(folder))
      if (unfinished.test(name)) await rm(join(folder, name), { recursive: true, force: true })
  }

  async #makeRoom(): Promise<void> {
    const { folder, wanted, maxBytes = usual.maxBytes } = this.#options
    const names = (await readdir(folder)).filter((name) => !unfinished.test(name))
    const kept = await Promise.all(names.map((hash) => this.#sizeOf(hash)))
    let left = kept.reduce((sum, { bytes }) => sum + bytes, 0)
    const keep = wanted()
    for (const { hash, bytes } of kept.toSorted((a, b) => a.usedAt - b.usedAt)) {
      if (left <= maxBytes) return
      if (keep.has(hash) || this.#coming.has(hash)) continue
      await this.#remove(hash)
      left -= bytes
    }
  }

  /** One that cannot be read is removed first. */
  async #sizeOf(hash: string): Promise<{ hash: string; bytes: number; usedAt: number }> {
    const { folder } = this.#options
    try {
      const { mtimeMs } = await stat(keptIn(folder, hash).root)
      const files = readList(folder, hash)
      // What a file takes on the disk, about.
      const bytes = files.reduce((sum, { sizeBytes }) => sum + Math.ceil((sizeBytes + 1) / blockBytes) * blockBytes, 0)
      return { hash, bytes, usedAt: mtimeMs }
    } catch {
      return { hash, bytes: 0, usedAt: 0 }
    }
  }

  /** Killed in the middle, it must not leave half of a bundle under its name. */
  async #remove(hash: string): Promise<void> {
    const { folder } = this.#options
    const gone = join(folder, `.new-gone-${++this.#count}`)
    await rename(keptIn(folder, hash).root, gone)
    await rm(gone, { recursive: true, force: true })
  }
}

const blockBytes = 4_096
