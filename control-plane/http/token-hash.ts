import { hash } from 'node:crypto'
import { type World, base62 } from '../../shared/lib/world.ts'

/** Returns the form in which a token is stored. */
export const hashToken = (token: string): string => hash('sha256', token)

/** 43 base62 characters: 256 bits. Tokens are kept as SHA-256 hashes; being random they need no slow hash. */
export function newToken(world: World, prefix: 'svc_dev_' | 'svc_pat_' | 'svc_dsh_' | 'svc_shr_'): string {
  return prefix + base62(world.bytes(64), 43)
}
