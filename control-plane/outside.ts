import type { Knex } from 'knex'
import { join } from 'node:path'
import { dataFiles } from '../shared/lib/places.ts'
import { loadServices, type ServiceCatalog } from './catalog/services.ts'
import type { ServerConfig } from './config.ts'
import { createOutbound, type Outbound } from './outbound/outbound.ts'
import { createMailService } from './mail/connection.ts'
import type { Mailer } from './mailer/mailer.ts'
import type { Service } from '../shared/lib/services.ts'
import type { Sweep } from './sweeps/sweeper.ts'
import { RepoSources } from './repo-source/repo-sources.ts'
import { Renewals } from './resources/connections/renewal.ts'
import { keySourceOf } from './vault/key-source.ts'
import { createVault, type Vault } from './vault/vault.ts'
import { createWebhooks } from './webhooks/connection.ts'
import type { WebhookSenderOptions } from './webhooks/sender.ts'

interface OutsideOptions extends Omit<WebhookSenderOptions, 'answers' | 'outbound' | 'vault' | 'sendsMail'> {
  config: ServerConfig
}

/** Creates what asks at addresses that people and agents name, by the configuration, and the vault of what it shows there. */
export function createOutside({ config, ...options }: OutsideOptions): {
  root: Knex
  vault: Vault
  outbound: Outbound
  repoSources: RepoSources
  services: ServiceCatalog
  renewals: Renewals
  mailer: Mailer | null
  /** What tells addresses and people of events. */
  senders: readonly Service[]
  sweeps: readonly Sweep[]
} {
  const { root, world, log } = options
  const vault = createVault(keySourceOf({ config }), world)
  const outbound = createOutbound({ allowHosts: config.allowHosts, world })
  const repoSources = new RepoSources({ folder: join(config.dataDir, dataFiles.fetches), outbound, world, log })
  void repoSources.clear()
  const everyMs = Math.min(1_000, config.sweepMs)
  const mail = createMailService(config.smtp, { root, world, log, everyMs })
  const webhooks = createWebhooks({ ...options, vault, outbound, everyMs, sendsMail: mail.mailer !== null })
  const services = loadServices(config.servicesFile)
  return {
    root,
    vault,
    outbound,
    repoSources,
    services,
    renewals: new Renewals(),
    mailer: mail.mailer,
    senders: [webhooks.sender, mail.sender ?? {}],
    sweeps: [...webhooks.sweeps, ...mail.sweeps],
  }
}
