import type { ModelCatalog } from '../catalog/catalog.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { Bus } from '../link/bus.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { DeviceRequests } from '../link/requests.ts'

/** What handlers need beside their request; made once when the server is assembled. */
export interface ResourceDependencies {
  bus: Pick<Bus, 'poke' | 'on' | 'onSignal'>
  dispatcher: Pick<Dispatcher, 'isLinked' | 'offerMs' | 'push'>
  requests: Pick<DeviceRequests, 'changeSet' | 'checkFolder'>
  heartbeatMs: number
  leaseMs: number
  cloudEnabled: boolean
  catalog: ModelCatalog
  /** What every run's limits are cut down to. */
  runLimits: Partial<RunSpec['limits']>
  /** Where this server is reached, without a slash at its end. */
  publicUrl(): string
}
