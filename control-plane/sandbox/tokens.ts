import type { SandboxId } from '../../shared/lib/ids.ts'
import { createHmac } from 'node:crypto'
import { base62 } from '../../shared/lib/world.ts'

/** Secrets by which the sandboxes of a server are told apart, made of a key that all its replicas have. */
export interface SandboxKeys {
  /** The label of this server's containers: two servers on one engine leave each other's alone. */
  serverId: string
  /** The token with which a sandbox says its first hello. Whoever creates it again gives it the same. */
  tokenOf: (sandboxId: SandboxId, nth?: 'once more') => string
  /** Returns the key that a sandbox shows to its broker at a port. */
  brokerKeyOf: (sandboxId: SandboxId) => string
}

export function sandboxKeys(key: Uint8Array): SandboxKeys {
  const mac = (of: string) => createHmac('sha512', key).update(of).digest()
  return {
    serverId: mac('server').toString('hex').slice(0, 32),
    brokerKeyOf: (sandboxId) => base62(mac(`broker of ${sandboxId}`), 43),
    tokenOf: (sandboxId, nth) =>
      `svc_dev_${base62(mac(`token of ${sandboxId}${nth === undefined ? '' : ` ${nth}`}`), 43)}`,
  }
}
