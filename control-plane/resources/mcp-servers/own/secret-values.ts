import type { Db } from '../../../db/open.ts'
import type { Vault } from '../../../vault/vault.ts'
import { secretsForRun, secretsOfWorkspace } from '../../secrets/store.ts'
import type { McpServerRow } from '../store.ts'

/**
 * The values of secrets that a server may be sent, by these names. Whoever sets the address of a server of an agent has what the agent is
 * granted, and nothing else; one of the workspace is set by admins.
 */
export async function secretValuesFor(
  db: Db,
  { workspaceId, agentRef }: Pick<McpServerRow, 'workspaceId' | 'agentRef'>,
  { names, vault }: { names: readonly string[]; vault: Pick<Vault, 'open'> },
): Promise<Record<string, string>> {
  if (agentRef === null) return secretsOfWorkspace(db, { workspaceId, names }, vault)
  const granted = Object.entries(await secretsForRun(db, { agentRef }, vault))
  return Object.fromEntries(granted.filter(([name]) => names.includes(name)))
}
