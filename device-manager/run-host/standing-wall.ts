import { isDeepStrictEqual } from 'node:util'
import { type SandboxFacts } from '../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import type { World } from '../../shared/lib/world.ts'
import type { TriedAct } from '../../shared/runs/wall-acts.ts'
import { trySandboxActs } from '../wall/sandbox-acts.ts'
import type { WallSpec } from '../wall/spec.ts'
import { beginWall, makeWall, type Wall, type WallAhead } from '../wall/wall.ts'
import { makePrivateFolder } from './wire/record.ts'

/** The wall of this host's run. It is made before there is a run: that takes several programs, one after another. */
export class StandingWall {
  /** The folder within the state folder that the harness may write to. */
  readonly own: string
  readonly #world: World
  readonly #sandbox: SandboxFacts | null
  #acts: Promise<TriedAct[]> | null = null
  #ahead: { spec: WallSpec; wall: WallAhead } | null = null

  /** `sandbox`: that in which this host is; null: it is in none whose walls are to be tried. */
  constructor(own: string, world: World, sandbox: SandboxFacts | null) {
    this.own = own
    this.#world = world
    this.#sandbox = sandbox
  }

  /** Tries the walls of the sandbox, once, and returns the acts; null: this is no sandbox. */
  async tryActs(): Promise<TriedAct[] | null> {
    if (this.#sandbox === null) return null
    const { hostFolder = null, network } = this.#sandbox
    return (this.#acts ??= trySandboxActs({ work: sandboxPlaces.work, hostFolder, network }))
  }

  /** Makes the wall ahead. A run will tell what keeps it from being made, such as a full disk. */
  standBy(spec: WallSpec): void {
    this.end()
    try {
      makePrivateFolder(this.own)
    } catch {
      return
    }
    this.#ahead = { spec, wall: beginWall(spec, [this.own], this.#world) }
  }

  /** Makes the wall as `makeWall` does, or takes the one that was made ahead when it is the same. */
  make(spec: WallSpec): Promise<Wall> {
    makePrivateFolder(this.own)
    const ahead = this.#ahead
    if (ahead === null || !isDeepStrictEqual(ahead.spec, spec)) return makeWall(spec, [this.own], this.#world)
    this.#ahead = null
    return ahead.wall.take()
  }

  /** Removes the wall that was made ahead and is not wanted. */
  end(): void {
    this.#ahead?.wall.end()
    this.#ahead = null
  }
}
