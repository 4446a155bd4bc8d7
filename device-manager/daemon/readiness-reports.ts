import type { FolderFacts } from '../../shared/device/folder-check.ts'
import type { DeviceMessage, ProviderReadiness } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log/log.ts'
import { WallError } from '../wall/spec.ts'
import type { Surroundings } from './surroundings.ts'

export interface ReadinessReportsOptions {
  world: Pick<World, 'now'>
  log: Log
  surroundings: Pick<Surroundings, 'readiness' | 'readinessNow' | 'knownReadiness'>
  isolation(): ProviderReadiness['isolation']
  folders(): Record<string, FolderFacts>
  send(message: DeviceMessage): boolean
  /** A look found the harnesses to be others than at the look before. */
  news(): void
}

/** Tells the control plane of harnesses, isolation and folders: all at each welcome, and again when something changed. */
export class ReadinessReports {
  private readonly options: ReadinessReportsOptions
  private last = ''
  /** By the look that ended last. */
  private found: string | null = null

  constructor(options: ReadinessReportsOptions) {
    this.options = options
  }

  /** Tells it even if it was told last. */
  async report(maxAgeMs: number): Promise<void> {
    if (await this.probe(() => this.options.surroundings.readiness(maxAgeMs))) this.tell(this.now())
  }

  /** Tells what changed. Resolves whether the harnesses are others than before. */
  async probeAgain({ askShell }: { askShell: boolean }): Promise<boolean> {
    const { surroundings } = this.options
    const before = this.known()
    await this.probe(() => surroundings.readinessNow({ askShell }))
    this.tellChanges()
    return this.known() !== before
  }

  /** Nothing before the harnesses were looked at: a report without them would say that there are none. */
  tellChanges(): void {
    const now = this.now()
    if (this.options.surroundings.knownReadiness() !== null && JSON.stringify(now) !== this.last) this.tell(now)
  }

  private now(): ProviderReadiness {
    const known = this.options.surroundings.knownReadiness()
    return { harnesses: {}, ...known, isolation: this.options.isolation(), folders: this.options.folders() }
  }

  private tell(providerReadiness: ProviderReadiness): void {
    const capturedAt = this.options.world.now()
    if (this.options.send({ type: 'readiness', providerReadiness, capturedAt }))
      this.last = JSON.stringify(providerReadiness)
  }

  private readonly known = (): string => JSON.stringify(this.options.surroundings.knownReadiness())

  private async probe(at: () => Promise<unknown>): Promise<boolean> {
    try {
      await at()
      const found = this.known()
      // Looks may overlap: what counts is what the one that ended last found.
      if (this.found !== null && found !== this.found) this.options.news()
      this.found = found
      return true
    } catch (error) {
      // Without a wall nothing of the harnesses is started, and what is known of them is told.
      if (error instanceof WallError) return true
      this.options.log.warn({ err: error }, 'the harness programs could not be looked at')
      return false
    }
  }
}
