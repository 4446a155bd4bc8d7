import { idNames, makeThings, unknownIds } from './collected.ts'
import type { Stage } from './stage.ts'

/** Things that are there, by the parameter that names them; made anew now and then, since requests change and delete them. */
export type Pool = Readonly<Record<string, string>>

/** `isWorking`: its run is the one that works, and not one that waits. */
export async function makePool(stage: Stage, isWorking = false): Promise<Pool> {
  const liveRunId = stage.live.runId
  const agentId = await stage.agent()
  const keeper = { server: stage.server, person: stage.owner, agentId, colleague: stage.member, liveRunId }
  return { ...(await makeThings(keeper)), ...(isWorking ? { runId: liveRunId } : {}) }
}

/** The key in the pool of a path's parameter. */
export function poolNameOf(path: string, name: string): string {
  const own = `${path.replace(/^\/api(?:\/v1)?\//, '').split('/')[0]}.${name}`
  return own in unknownIds ? own : name
}
export const isInPool = (name: string): boolean => idNames.includes(name)

/** Puts the things that there are where a drawn request names them. */
export const filled = <T>(value: T, pool: Readonly<Record<string, string>>): T =>
  JSON.parse(JSON.stringify(value ?? null).replaceAll(/<([\w.]+)>/g, (whole, name: string) => pool[name] ?? whole)) as T
