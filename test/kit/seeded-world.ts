import { idFrom } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { base62, realWorld } from '../../shared/lib/world.ts'
import type { MovableWorld } from './server.ts'

/** When it begins: any moment would do. */
const start = Date.UTC(2026, 2, 2, 9)

/**
 * A world whose ids and chance come from a seed, and whose clock stands still but for `advance`: a server that is asked the
 * same in it answers the same. Each kind of id counts for itself, so that one made beside a request takes none from another
 * kind. Timers are real.
 */
export function seededWorld(seed: number): MovableWorld {
  let clock = start
  const counts = new Map<string, number>()
  function draw(kind: string): Buffer {
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    return createHash('sha512').update(`${seed} ${kind} ${count}`).digest()
  }
  return {
    ...realWorld,
    now: () => clock,
    advance: (ms) => void (clock += ms),
    id: (prefix) => idFrom(prefix + base62(draw(prefix), 16)),
    uuid() {
      const hex = draw('uuid').toString('hex')
      return idFrom(
        `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`,
      )
    },
    bytes(byteCount) {
      const parts = Array.from({ length: Math.ceil(byteCount / 64) }, () => draw('bytes'))
      return new Uint8Array(Buffer.concat(parts).subarray(0, byteCount))
    },
    random: () => draw('random').readUInt32BE() / 2 ** 32,
  }
}
