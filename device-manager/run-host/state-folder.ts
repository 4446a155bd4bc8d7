import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import type { World } from '../../shared/lib/world.ts'

export interface StateFolderOptions {
  path: string
  world: Pick<World, 'after'>
  /** A folder that is gone has this long to come back, as one that is moved does. */
  backMs: number
  /** Hears that the folder is gone: nothing of what the run does can be stored. */
  onGone(): void
  /** Hears that the folder did not come back. */
  onGivenUp(): void
}

/**
 * The folder of the device, as one of its run hosts sees it. A host works on without a daemon, but not without the folder: it would write
 * into files that have no name any more, and nobody comes to read them.
 *
 *     there -- looked for, and not found --> gone (the run is ended) -- `backMs` later, or told to end --> given up
 */
export class StateFolder {
  readonly #options: StateFolderOptions
  readonly #inode: string | null
  #isGone = false
  #isGivenUp = false

  constructor(options: StateFolderOptions) {
    this.#options = options
    this.#inode = inodeOf(options.path)
  }

  watch(): void {
    const { world, backMs } = this.#options
    world.after(backMs / 6, () => {
      if (this.#isMissing()) this.#lose()
      else this.watch()
    })
  }

  /** Gives the folder up for a host that is told to end. False: the folder is there. */
  giveUpIfGone(): boolean {
    if (!this.#isMissing()) return false
    this.#lose()
    this.#giveUp()
    return true
  }

  #lose(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#options.onGone()
    this.#options.world.after(this.#options.backMs, () => {
      if (this.#isMissing()) this.#giveUp()
    })
  }

  #giveUp(): void {
    if (this.#isGivenUp) return
    this.#isGivenUp = true
    this.#options.onGivenUp()
  }

  /** Another folder in its place is of another device, or of none. */
  #isMissing(): boolean {
    try {
      return inodeOf(this.#options.path) !== this.#inode
    } catch {
      // A disk that does not answer now is not gone.
      return false
    }
  }
}

/** Returns the number of the file; null: nothing is there. Throws where the system cannot tell. */
function inodeOf(path: string): string | null {
  try {
    const { dev, ino } = statSync(path)
    return `${dev}:${ino}`
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  }
}

/** Writes to the system's log: the host's own is gone with the folder. Resolves when that is done or cannot be. */
export function tellSystem(text: string): Promise<void> {
  return new Promise((resolve) => {
    const args = ['-t', 'svc-device', '-p', 'user.err', text]
    execFile('logger', args, { cwd: '/', timeout: 2_000 }, () => resolve())
  })
}
