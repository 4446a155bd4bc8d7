import { existsSync } from 'node:fs'
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { World } from '../../shared/lib/world.ts'
import type { HarnessName } from '../../shared/runs/harnesses.ts'
import type { Log } from '../log/log.ts'
import type { FirstStart, HarnessAdapter, HarnessProbe } from './adapter.ts'
import { adapters } from './registry.ts'

const limitMs = 20_000
/** A kept file that is larger is not what a first start writes. */
const maxFileBytes = 8 * 1024 * 1024
/** Each run copies all of them. */
const maxFiles = 32

/** The folder that keeps what this version of the program writes at its first start. */
export const firstStartFolder = (
  stateDir: string,
  { name, version, firstStart }: { name: HarnessName; version: string; firstStart: Pick<FirstStart, 'edition'> },
): string => join(stateDir, 'first-starts', `${name}-${version}-${firstStart.edition}`)

export interface FirstStartsOptions {
  stateDir: string
  world: World
  log: Pick<Log, 'warn'>
  harnesses?: readonly Pick<HarnessAdapter, 'name' | 'firstStart'>[]
  /** Gives a door to the machine with these variables besides, whose programs run in `home`, may write to it, and see no run. */
  within: <Result>(
    options: { home: string; env: Readonly<Record<string, string>> },
    use: (probe: HarnessProbe) => Promise<Result>,
  ) => Promise<Result>
}

interface Made {
  name: HarnessName
  version: string
  firstStart: FirstStart
}

/**
 * Starts a harness once in an empty home, for each version, and keeps what it writes there. A run's own home begins with a
 * copy (`HarnessLaunch.copies`), so that no run waits for what a program does in a home that is new to it.
 */
export class FirstStarts {
  private readonly options: FirstStartsOptions
  /** The version that was tried last, also where it failed: it would fail again. */
  private readonly tried = new Map<HarnessName, string>()
  private working: Promise<void> = Promise.resolve()

  constructor(options: FirstStartsOptions) {
    this.options = options
  }

  /** Makes what is missing for the harnesses that were found. Never rejects. */
  keep(found: Readonly<Record<string, { version: string | null }>>): Promise<void> {
    for (const { name, firstStart } of this.options.harnesses ?? adapters) {
      const version = found[name]?.version ?? null
      if (firstStart === undefined || version === null || this.tried.get(name) === version) continue
      this.tried.set(name, version)
      this.working = this.working
        .then(() => this.make({ name, version, firstStart }))
        .catch((error: unknown) =>
          this.options.log.warn({ err: error, harness: name, version }, 'a first start could not be kept'),
        )
    }
    return this.working
  }

  private async make({ name, version, firstStart }: Made): Promise<void> {
    const { stateDir, world, within } = this.options
    const kept = firstStartFolder(stateDir, { name, version, firstStart })
    if (existsSync(kept)) return
    const all = join(kept, '..')
    await mkdir(all, { recursive: true, mode: 0o700 })
    // What an earlier version left, and what a daemon left that ended while it was at this.
    for (const old of await readdir(all))
      if (old.startsWith(`${name}-`)) await rm(join(all, old), { recursive: true, force: true })
    const home = join(all, world.id(`${name}-new-`))
    await mkdir(home, { mode: 0o700 })
    try {
      const { exitCode, stderr } = await within({ home, env: firstStart.env(home) }, async (probe) => {
        const file = await probe.which(name)
        if (file === null) throw new Error(`${name} is not there any more`)
        return probe.run(file, firstStart.args, limitMs, firstStart.talk?.())
      })
      if (exitCode !== 0) throw new Error(`${name} ended with ${exitCode ?? 'a signal'}: ${stderr.slice(0, 500)}`)
      for (const entry of await readdir(home)) {
        const path = join(home, entry)
        const status = await lstat(path)
        // A second name of a file that lies elsewhere would hand that file to each run.
        const isOwn = status.isFile() && status.nlink === 1 && status.size <= maxFileBytes
        if (!isOwn || !firstStart.keeps(entry)) await rm(path, { recursive: true })
      }
      if ((await readdir(home)).length > maxFiles) throw new Error(`${name} wrote more than ${maxFiles} files`)
      await rename(home, kept)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }
}
