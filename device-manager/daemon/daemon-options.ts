import type { CloseName } from '../../shared/device/limits.ts'
import type { DeviceIdentity } from '../../shared/device/device-identity.ts'
import type { World } from '../../shared/lib/world.ts'
import type { IsolationOptions } from '../isolation/isolation.ts'
import type { Log } from '../log/log.ts'
import type { StartedHost, StartHost } from '../run/hosts/host-process.ts'
import type { Stop } from '../run/machine.ts'
import type { DaemonConfig } from '../setup/config.ts'
import type { Places } from '../setup/places.ts'

export interface DaemonOptions {
  config: DaemonConfig
  places: Places
  world: World
  log: Log
  identity: DeviceIdentity
  token: string
  keepsToken: boolean
  /** Nobody installs programs or changes a profile here: what was looked at is as it was. */
  isFixed?: boolean
  /** A run is offered as soon as the link is up, and its host is on its way. */
  earlyHost?: StartedHost
  /** Starts run hosts; default: each is a process of its own. */
  startHost?: StartHost
  version: string
  /** The first run to take over or to start, or events left of one. */
  onWork(): void
  executed: IsolationOptions['executed']
  /** The server does not know the token, and live runs go on until the owner connects the device anew; null: it knows it. */
  onRefused(refused: { reason: CloseName; text: string } | null): void
  /** The control plane has all of a run, and wants nothing more of it. */
  onForgotten?(): void
  /** How runs end that a machine which is lost left under way. */
  lost?: Stop
  /** The daemon must end: revoked, retired, or another one has its identity. */
  onFatal(reason: CloseName, text: string): void
}
