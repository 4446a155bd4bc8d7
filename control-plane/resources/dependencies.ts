import type { SandboxSize } from '../../shared/api/agents.ts'
import type { ModelProvider } from '../../shared/runs/brokered.ts'
import type { Knex } from 'knex'
import type { Blobs } from '../blobs/blobs.ts'
import type { ModelCatalog } from '../catalog/catalog.ts'
import type { ServiceCatalog } from '../catalog/services.ts'
import type { CostlyPool } from '../costly/pool.ts'
import type { GithubClient } from '../github/client.ts'
import type { Bus } from '../db/bus.ts'
import type { DeviceRequests } from '../link/requests.ts'
import type { Mailer } from '../mailer/mailer.ts'
import type { Outbound } from '../outbound/outbound.ts'
import type { Meaning } from '../search/embeddings/meaning.ts'
import type { Vault } from '../vault/vault.ts'
import type { WakeContext } from '../run/wakes/wake.ts'
import type { RepoSources } from '../repo-source/repo-sources.ts'
import type { Renewals } from './connections/renewal.ts'
import type { FileUrls } from './files/signature.ts'
import type { RunWaits } from './runs/why.ts'
import type { SandboxRow } from './sandboxes/store.ts'
import type { WorkflowCatalog } from '../workflows/catalog/catalog.ts'
import type { EnginePool } from '../workflows/engine/pool.ts'

export interface CloudSetup {
  /** The image as the operator names it. */
  image: string
  /** The providers of models for which the operator pays. */
  operatorKeys: readonly ModelProvider[]
  /** Says a size in words for people. */
  describeSize: (size: SandboxSize) => string
  /** The last lines of what its runner wrote; null: the engine cannot be reached. */
  logOf: (sandbox: SandboxRow, lines: number) => Promise<string | null>
}

/** The dependencies of handlers, made once when the server is assembled. */
export interface ResourceDependencies {
  /** The database outside of a request's transaction, for steps before one, which write in transactions of their own. */
  root: Knex
  bus: Pick<Bus, 'on' | 'onSignal'>
  requests: Pick<DeviceRequests, 'changeSet' | 'checkFolder'>
  /** Workers for work whose cost a caller decides. */
  costly: Pick<CostlyPool, 'run'>
  /** Runs the programs of workflows; null: the operator turned them off. */
  engine: Pick<EnginePool, 'run'> | null
  /** The programs that come with the server. */
  workflowCatalog: Pick<WorkflowCatalog, 'list'>
  heartbeatMs: number
  leaseMs: number
  /** The times that a run waits at most. */
  waits: RunWaits
  /** The setup that takes runs of the cloud; null: they are off. */
  cloud: CloudSetup | null
  catalog: ModelCatalog
  /** Outside services to connect to. */
  services: ServiceCatalog
  wakeContext: WakeContext
  /** null: the operator gave no credentials. */
  github: GithubClient | null
  /** Events of GitHub arrive and their subjects can be read. */
  isGithubInstalled: boolean
  /** Encrypts the values of secrets. */
  vault: Vault
  /** Services whose secrets are accepted; null: any. */
  secretProviders: readonly string[] | null
  /** The store of the bytes of files. */
  blobs: Pick<Blobs, 'open' | 'has' | 'release' | 'put' | 'giveUp'>
  /** Finds pages by what they are about; null: the operator named no model. */
  meaning: Pick<Meaning, 'find' | 'model'> | null
  /** Sends mail; null: the operator named no SMTP server. */
  mailer: Pick<Mailer, 'send'> | null
  /** Asks at addresses that people and agents name. */
  outbound: Outbound
  /** Renews the tokens of connections. */
  renewals: Renewals
  /** Reads files of git repositories that people and agents name. */
  repoSources: Pick<RepoSources, 'with'>
  fileUrls: Pick<FileUrls, 'urlOf'>
  /** Returns whether what was deleted is purged in time; false while the server starts. */
  isSweeping(): boolean
  /** The address of this server, without a slash at its end. */
  publicUrl(): string
}
