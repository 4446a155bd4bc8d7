import type { ModelCatalog } from '../catalog/catalog.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { CostlyPool } from '../costly/pool.ts'
import type { GithubClient } from '../github/client.ts'
import type { Bus } from '../db/bus.ts'
import type { Dispatcher } from '../lifecycle/dispatcher.ts'
import type { DeviceRequests } from '../link/requests.ts'
import type { Vault } from '../vault/vault.ts'

/** The dependencies of handlers, made once when the server is assembled. */
export interface ResourceDependencies {
  bus: Pick<Bus, 'on' | 'onSignal'>
  dispatcher: Pick<Dispatcher, 'isLinked' | 'offerMs' | 'push'>
  requests: Pick<DeviceRequests, 'changeSet' | 'checkFolder'>
  /** Workers for work whose cost a caller decides. */
  costly: Pick<CostlyPool, 'run'>
  heartbeatMs: number
  leaseMs: number
  cloudEnabled: boolean
  catalog: ModelCatalog
  /** Upper bounds for every run's limits. */
  runLimits: Partial<RunSpec['limits']>
  /** null: the operator gave no credentials. */
  github: GithubClient | null
  /** Whether events of GitHub arrive and their subjects can be read. */
  isGithubInstalled: boolean
  /** Encrypts the values of secrets. */
  vault: Vault
  /** Services whose secrets are accepted; null: any. */
  secretProviders: readonly string[] | null
  /** The address of this server, without a slash at its end. */
  publicUrl(): string
}
