import { idFrom } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import { loadServices } from '../../control-plane/catalog/services.ts'
import { openDatabase } from '../../control-plane/db/open.ts'
import { createOutbound } from '../../control-plane/outbound/outbound.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { ConnectionUnusable, useConnection } from '../../control-plane/resources/connections/for-runs.ts'
import { Renewals } from '../../control-plane/resources/connections/renewal.ts'
import { createVault } from '../../control-plane/vault/vault.ts'
import { realWorld } from '../../shared/lib/world.ts'

// A process that uses a connection once, and says what came of it: a version of the credential, or why there is none.

const { url, key, file, workspaceId, connectionId, aheadMs } = z
  .object({
    url: z.string(),
    key: z.string(),
    file: z.string(),
    workspaceId: z.string(),
    connectionId: z.string(),
    /** How far its clock is ahead. */
    aheadMs: z.number(),
  })
  .parse(JSON.parse(process.argv[2]!))

const database = openDatabase({ url })
const world = { ...realWorld, now: () => realWorld.now() + aheadMs }
const deps = {
  root: database.root,
  world,
  log: silentLog,
  vault: createVault({ kind: 'given', text: key }, world),
  services: loadServices(file),
  outbound: createOutbound({ allowHosts: ['127.0.0.1'], world }),
  renewals: new Renewals(),
}
try {
  const used = await useConnection(
    deps,
    { workspaceId: idFrom(workspaceId), agentOwnerUuid: null },
    { connectionId: idFrom(connectionId) },
  )
  process.stdout.write(String(used.credentialVersion))
} catch (error) {
  if (!(error instanceof ConnectionUnusable)) throw error
  process.stdout.write(error.reason)
}
await database.close()
