import { join } from 'node:path'
import { dataFiles } from '../shared/lib/places.ts'
import type { World } from '../shared/lib/world.ts'
import { loadServices, type ServiceCatalog } from './catalog/services.ts'
import type { ServerConfig } from './config.ts'
import { createOutbound, type Outbound } from './outbound/outbound.ts'
import type { Log } from './process/log.ts'
import { RepoSources } from './repo-source/repo-sources.ts'
import { Renewals } from './resources/connections/renewal.ts'

/** Creates what asks at addresses that people and agents name, by the configuration. */
export function createOutside({ config, world, log }: { config: ServerConfig; world: World; log: Log }): {
  outbound: Outbound
  repoSources: RepoSources
  services: ServiceCatalog
  renewals: Renewals
} {
  const outbound = createOutbound({ allowHosts: config.allowHosts, world })
  const repoSources = new RepoSources({ folder: join(config.dataDir, dataFiles.fetches), outbound, world, log })
  void repoSources.clear()
  return { outbound, repoSources, services: loadServices(config.servicesFile), renewals: new Renewals() }
}
