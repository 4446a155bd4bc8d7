import type { PersonRef, WorkspaceUuid } from '../../shared/lib/ids.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { toTimestamp } from '../../shared/api/ids.ts'
import { base62, type World } from '../../shared/lib/world.ts'
import { dataFiles } from '../../shared/lib/places.ts'
import type { OperatorConfig } from '../config.ts'
import type { Db } from '../db/open.ts'
import { hashToken } from '../http/token-hash.ts'
import { paths } from '../sign-in/paths.ts'
import { insertLink } from '../sign-in/store.ts'
import { memberByEmail } from './people.ts'

// Links for one use by which the operator signs a browser in as a member.

const linkMs = 15 * 60_000

export interface LoginLink {
  userId: PersonRef
  workspaceId: WorkspaceUuid
  /** Works once. Whoever has it can act as the person. */
  url: string
  expiresAt: string
}

/** `server` is the address of the running server, without a slash at its end. */
export async function createLoginLink(
  db: Db,
  world: World,
  input: { email: string; workspace: string | null; server: string },
): Promise<LoginLink> {
  const { user, workspaceId } = await memberByEmail(db, input)
  const token = base62(world.bytes(64), 43)
  const at = world.now()
  const expiresAt = at + linkMs
  await insertLink(db, {
    id: world.id('lnk_'),
    tokenHash: hashToken(token),
    personUuid: user.id,
    workspaceId,
    createdAt: at,
    expiresAt,
  })
  return {
    userId: user.publicId,
    workspaceId,
    url: `${input.server}${paths.link}?token=${token}`,
    expiresAt: toTimestamp(expiresAt),
  }
}

/**
 * The public address, else the address of the server that runs with this data folder, else the one it would listen on.
 */
export function serverAddress(config: OperatorConfig): string {
  if (config.publicUrl !== null) return config.publicUrl
  const running = urlIn(join(config.dataDir, dataFiles.server))
  if (running !== null) return running
  return `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port}`
}

/** The address in the file of a running server; null without such a file. */
export function urlIn(serverFile: string): string | null {
  try {
    return z.object({ url: z.url() }).parse(JSON.parse(readFileSync(serverFile, 'utf8'))).url
  } catch {
    return null
  }
}
