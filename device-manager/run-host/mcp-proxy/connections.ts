import type { ConnectionId } from '../../../shared/lib/ids.ts'
import type { CredentialAnswer } from '../../../shared/device/credential.ts'
import type { Redactor } from '../../../shared/lib/redact.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { HostReply } from '../wire/protocol.ts'
import { ProxyError, type Credential } from './credential.ts'

type CredentialRequest = Extract<HostReply, { type: 'credential.get' }>

export interface ConnectionsOptions {
  world: Pick<World, 'uuid' | 'monotonic' | 'after'>
  /** Asks the control plane by way of the daemon, which may be away: then nothing comes back. */
  ask: (request: CredentialRequest) => void
}

/** A request is sent again at this interval, for this long: the daemon or its link may have been away. */
const askAgainMs = 5_000
const patienceMs = 65_000
/** A credential that could not be had is not asked for again within this time. */
const failedMs = 2_000
/** A credential that was renewed so lately is tried before another one is asked for: several requests are refused at once. */
const renewedMs = 5_000
/** A credential is asked for anew this long before the old one ends, or a quarter of its time. */
const aheadMs = 30_000
const shortestUseMs = 1_000

interface Held {
  headers: Readonly<Record<string, string>>
  version: number
  /** The time until which it is used, by the monotonic clock; null: it does not end. */
  usedUntil: number | null
}

interface Kept {
  held: Held | null
  asking: Promise<Held> | null
  failed: { error: ProxyError; at: number } | null
  renewedAt: number | null
}

/**
 * The credentials of a run's connections, in the memory of the run host alone. Each is asked for when a request needs it, once for all
 * that wait, and anew before it ends or when the service refuses it.
 */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #kept = new Map<string, Kept>()
  readonly #waiting = new Map<string, (answer: CredentialAnswer) => void>()
  readonly #values = new Map<string, string>()
  readonly #redactors: Redactor[] = []

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** Has the redactor know all values that came and will come. */
  teach(redactor: Redactor): void {
    this.#redactors.push(redactor)
    redactor.add(...[...this.#values].map(([value, name]) => ({ name, value })))
  }

  /** `own`: headers of the server beside those of the connection. */
  credential(connectionId: ConnectionId, own: Readonly<Record<string, string>>): Credential {
    return {
      headers: async () => merged(own, (await this.#current(connectionId)).headers),
      renew: () => this.#renew(connectionId),
    }
  }

  answered(requestId: string, answer: CredentialAnswer): void {
    this.#waiting.get(requestId)?.(answer)
  }

  close(): void {
    for (const settle of this.#waiting.values()) settle({ ok: false, message: 'The run is over.' })
    this.#kept.clear()
  }

  #keptOf(connectionId: ConnectionId): Kept {
    const known = this.#kept.get(connectionId)
    if (known) return known
    const kept: Kept = { held: null, asking: null, failed: null, renewedAt: null }
    this.#kept.set(connectionId, kept)
    return kept
  }

  async #current(connectionId: ConnectionId): Promise<Held> {
    const { held } = this.#keptOf(connectionId)
    const isGood = held !== null && (held.usedUntil === null || this.#now() < held.usedUntil)
    return isGood ? held : this.#ask(connectionId)
  }

  async #renew(connectionId: ConnectionId): Promise<true> {
    const kept = this.#keptOf(connectionId)
    if (kept.renewedAt !== null && this.#now() - kept.renewedAt < renewedMs) return true
    const before = kept.held?.version
    const { version } = await this.#ask(connectionId, before)
    if (version === before)
      throw new ProxyError(
        `it refused the credential of the connection ${connectionId} (401). A person signs in anew with: svc connection reauthorize ${connectionId}`,
      )
    kept.renewedAt = this.#now()
    return true
  }

  #ask(connectionId: ConnectionId, refused?: number): Promise<Held> {
    const kept = this.#keptOf(connectionId)
    const { failed } = kept
    if (failed !== null && this.#now() - failed.at < failedMs) return Promise.reject(failed.error)
    kept.asking ??= this.#answerFor(connectionId, refused)
      .then((answer) => this.#take(connectionId, answer))
      .then(
        (held) => (kept.held = held),
        (error: ProxyError) => {
          kept.failed = { error, at: this.#now() }
          throw error
        },
      )
      .finally(() => (kept.asking = null))
    return kept.asking
  }

  async #answerFor(connectionId: ConnectionId, refusedVersion: number | undefined): Promise<CredentialAnswer> {
    const { world, ask } = this.#options
    const requestId = world.uuid()
    const until = this.#now() + patienceMs
    const { promise, resolve } = Promise.withResolvers<CredentialAnswer>()
    let cancel = () => {}
    const askOnce = () => {
      if (this.#now() >= until) return resolve({ ok: false, message: 'svc did not answer. Try again later.' })
      ask({
        type: 'credential.get',
        requestId,
        connectionId,
        ...(refusedVersion !== undefined && { refusedVersion }),
      })
      cancel = world.after(askAgainMs, askOnce)
    }
    this.#waiting.set(requestId, resolve)
    askOnce()
    try {
      return await promise
    } finally {
      cancel()
      this.#waiting.delete(requestId)
    }
  }

  #take(connectionId: ConnectionId, answer: CredentialAnswer): Held {
    if (!answer.ok) {
      const why = answer.message.replace(/\.$/, '')
      throw new ProxyError(`svc has no credential for it by the connection ${connectionId}: ${why}`)
    }
    const { headers, values, version, expiresInMs } = answer
    this.#learn(connectionId, values)
    if (expiresInMs === null) return { headers, version, usedUntil: null }
    const useMs = expiresInMs - Math.min(aheadMs, expiresInMs / 4)
    return { headers, version, usedUntil: this.#now() + Math.max(shortestUseMs, useMs) }
  }

  /** Teaches the redactors values before any of them is sent, so that none comes back unseen. */
  #learn(connectionId: ConnectionId, values: readonly string[]): void {
    const added = values.filter((value) => !this.#values.has(value))
    for (const value of added) this.#values.set(value, connectionId)
    for (const redactor of this.#redactors) redactor.add(...added.map((value) => ({ name: connectionId, value })))
  }

  #now(): number {
    return this.#options.world.monotonic()
  }
}

/** Merges headers, whose names are the same in upper and lower case. */
function merged(
  own: Readonly<Record<string, string>>,
  ofConnection: Readonly<Record<string, string>>,
): Record<string, string> {
  const names = new Set(Object.keys(ofConnection).map((name) => name.toLowerCase()))
  const others = Object.entries(own).filter(([name]) => !names.has(name.toLowerCase()))
  return { ...Object.fromEntries(others), ...ofConnection }
}
