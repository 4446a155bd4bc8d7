import type { Knex } from 'knex'
import { join } from 'node:path'
import { dataFiles } from '../shared/lib/places.ts'
import { loadServices, type ServiceCatalog } from './catalog/services.ts'
import type { ServerConfig } from './config.ts'
import { createOutbound, type Outbound } from './outbound/outbound.ts'
import { RepoSources } from './repo-source/repo-sources.ts'
import { Renewals } from './resources/connections/renewal.ts'
import { createVault, type KeySource, type Vault } from './vault/vault.ts'
import { createWebhooks, type Webhooks } from './webhooks/connection.ts'
import type { WebhookSenderOptions } from './webhooks/sender.ts'

interface OutsideOptions extends Omit<WebhookSenderOptions, 'answers' | 'outbound' | 'vault'> {
  config: ServerConfig
  keySource: KeySource
}

/** Creates what asks at addresses that people and agents name, by the configuration, and the vault of what it shows there. */
export function createOutside({ config, keySource, ...options }: OutsideOptions): {
  root: Knex
  vault: Vault
  outbound: Outbound
  repoSources: RepoSources
  services: ServiceCatalog
  renewals: Renewals
  webhooks: Webhooks
} {
  const { root, world, log } = options
  const vault = createVault(keySource, world)
  const outbound = createOutbound({ allowHosts: config.allowHosts, world })
  const repoSources = new RepoSources({ folder: join(config.dataDir, dataFiles.fetches), outbound, world, log })
  void repoSources.clear()
  const webhooks = createWebhooks({ ...options, vault, outbound, everyMs: Math.min(1_000, config.sweepMs) })
  const services = loadServices(config.servicesFile)
  return { root, vault, outbound, repoSources, services, renewals: new Renewals(), webhooks }
}
