/** A part of a program that lives from its start to its stop. Its constructor starts nothing. */
export interface Service {
  start?(): void | Promise<void>
  /** Stops the part. It is also called where the part was never started. */
  stop?(): void | Promise<void>
}

/**
 * Services in the order in which they start. They stop in reverse, so each may use those before it until it has stopped.
 *
 *     new -- start --> started -- stop --> stopped
 *
 * A stop that comes in the middle of a start lets no further service start.
 */
export class Services implements Service {
  readonly #services: readonly Service[]
  #stopped: Promise<void> | null = null

  constructor(services: readonly Service[]) {
    this.#services = services
  }

  /** Starts one after another; what starts at once, and nothing before it took time, starts within the call. */
  async start(): Promise<void> {
    for (const service of this.#services) {
      if (this.#stopped !== null) return
      const starting = service.start?.()
      if (starting !== undefined) await starting
    }
  }

  /** Stops all, also when one of them fails to; rejects with the first failure then. A second call waits for the first. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll()
    return this.#stopped
  }

  async #stopAll(): Promise<void> {
    const failures: unknown[] = []
    for (const service of this.#services.toReversed()) {
      try {
        await service.stop?.()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
