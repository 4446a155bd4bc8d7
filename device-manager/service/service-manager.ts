import type { UnitState } from '../../shared/lib/unit-words.ts'
import type { ServiceDefinition } from './definition.ts'
import type { InstalledService } from './systemd-unit.ts'

export type ServiceState = UnitState

/** The actions that systemd and launchd share. All but `write`, `read` and `state` fail with a ServiceError. */
export interface ServiceManager {
  readonly kind: 'systemd' | 'launchd'
  /** The account of a service of the machine, which root alone changes; null: the service is the person's own. */
  readonly account: string | null
  /** What to type to see what its program printed. */
  readonly output: string
  /** The file that describes the service. */
  readonly file: string
  write(definition: ServiceDefinition): string
  /** Returns what it runs; null when the text is not ours. */
  read(text: string): InstalledService | null
  /** Fails when the person's service manager cannot be talked to; nothing has been done then. */
  reach(): Promise<void>
  state(): Promise<ServiceState>
  /** Takes the file as it is now, to be started at each login. Starts nothing. */
  enable(): Promise<void>
  start(): Promise<void>
  /** Resolves when the daemon has ended. Does nothing to one that is down. */
  stop(): Promise<void>
  /** The reverse of `enable`; the file may be gone. */
  disable(): Promise<void>
  /** Must be called when the file was removed or put back. */
  reload(): Promise<void>
  /** Says whether it runs without a login; null where that is not a choice. */
  lingering(): Promise<boolean | null>
  /** False when it could not be done. */
  setLingering(on: boolean): Promise<boolean>
}
