import type { Socket } from 'node:net'
import type { Client } from 'pg'

/** Probes of the system for a connection on which nothing is under way; ten more, a second apart, and it counts as dead. */
export const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const

/** Members that pg keeps to itself, or has no types for. */
interface Insides {
  connection: { stream: Socket }
  /** True while no statement is under way. */
  readyForQuery: boolean
}

/**
 * Ends a connection on which a statement was sent and nothing has come for so long. PostgreSQL itself ends what takes longer
 * than its limit, so the machine it ran on is gone, or the way to it: the system would try for a quarter of an hour, and whoever
 * waits with it, though another server has taken over.
 */
export function endWhenSilent(client: Client, silentMs: number, isPatient: () => boolean = () => false): void {
  const insides = client as unknown as Insides
  const { stream } = insides.connection
  stream.setTimeout(silentMs)
  // The listener stays for every timeout: a function that is given to `setTimeout` is called once, and the connection may only have rested
  // then.
  stream.on('timeout', () => {
    if (insides.readyForQuery || isPatient()) return
    const message = `The database did not answer within ${Math.round(silentMs / 1_000)} s.`
    stream.destroy(Object.assign(new Error(message), { code: 'ETIMEDOUT' }))
  })
}
