import { isDeepStrictEqual } from 'node:util'
import type { World } from '../../shared/lib/world.ts'
import type { WallSpec } from '../wall/spec.ts'
import { beginWall, makeWall, type Wall, type WallAhead } from '../wall/wall.ts'

/** The wall of this host's run. Most of it is made before there is a run: that takes several programs, one after another. */
export class StandingWall {
  readonly #world: World
  #ahead: { spec: WallSpec; wall: WallAhead } | null = null

  constructor(world: World) {
    this.#world = world
  }

  standBy(spec: WallSpec): void {
    this.end()
    this.#ahead = { spec, wall: beginWall(spec, this.#world) }
  }

  /** As `makeWall`. What was made ahead is used when it is the same wall. */
  make(spec: WallSpec, own: readonly string[]): Promise<Wall> {
    const ahead = this.#ahead
    if (ahead === null || !isDeepStrictEqual(ahead.spec, spec)) return makeWall(spec, own, this.#world)
    this.#ahead = null
    return ahead.wall.finish(own)
  }

  /** What was made ahead is not wanted. */
  end(): void {
    this.#ahead?.wall.end()
    this.#ahead = null
  }
}
