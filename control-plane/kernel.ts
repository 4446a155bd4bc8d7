import type { World } from '../shared/lib/world.ts'
import type { ServerConfig } from './config.ts'
import type { ServiceCatalog } from './catalog/services.ts'
import type { Database } from './db/open.ts'
import { createCallerLookup } from './http/auth.ts'
import { createBodyRooms } from './http/body-room.ts'
import { createIdempotency } from './http/idempotency.ts'
import type { Kernel } from './http/kernel.ts'
import type { RunTokenKeys } from './http/run-token-keys.ts'
import { OpenStreams } from './http/open-streams.ts'
import { createLimiter, defaultRateRules } from './http/limits.ts'
import type { Log } from './process/log.ts'
import { findAgent } from './resources/agents/store.ts'
import { agentConnectionValues } from './resources/connections/agent-connections.ts'
import { withoutSecrets } from './resources/secrets/redact.ts'
import type { Vault } from './vault/vault.ts'

/** The HTTP kernel of one replica, by its configuration and its kind of database. */
export async function createKernel(
  parts: Pick<Kernel, 'stopping' | 'observe' | 'blobs'> & {
    config: ServerConfig
    database: Database
    world: World
    log: Log
    runTokenKeys: RunTokenKeys
    vault: Vault
    services: ServiceCatalog
  },
): Promise<Kernel> {
  const { config, database, world, log, runTokenKeys, vault, services, blobs, stopping, observe } = parts
  const { root, dialect } = database
  return {
    root,
    world,
    log,
    callers: createCallerLookup({
      db: root,
      runTokenKeys,
      world,
      idle: { sessionMs: config.sessions.idleMs, tokenMs: config.tokenIdleMs },
      publicUrl: config.publicUrl,
    }),
    limiter: await createLimiter({
      rules: { ...defaultRateRules, general: { points: config.requestsPerMinute, windowS: 60 } },
      world,
      shared: dialect === 'postgres' ? root : null,
    }),
    streams: new OpenStreams(),
    idempotency: createIdempotency({
      db: root,
      world,
      instance: world.uuid(),
      isSole: dialect === 'sqlite',
      vault,
    }),
    rooms: createBodyRooms(world),
    blobs,
    streamCheckMs: config.streamCheckMs,
    async censor({ agentRef }, body) {
      const agent = await findAgent(root, agentRef)
      const others =
        agent === null ? [] : await agentConnectionValues(root, agent, { vault, services, now: world.now() })
      return withoutSecrets(root, { run: { agentRef }, body, vault, others })
    },
    isChecking: config.checkReplies,
    isHttps: config.publicUrl?.startsWith('https:') ?? false,
    trustedProxies: config.trustedProxies,
    stopping,
    ...(observe && { observe }),
  }
}
