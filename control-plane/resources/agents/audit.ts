import type { AgentWarning } from '../../../shared/api/agents.ts'
import type { Db } from '../../db/open.ts'
import type { WorkspaceRow } from '../workspaces/store.ts'
import type { AgentRow } from './store.ts'

/**
 * Checks a stored agent for what would keep its runs from working. It looks at devices, secrets, skills and servers, of which an agent
 * knows nothing, so `routes.ts` gives it to the handlers of agents (`resources/agent-doctor`). `now` in ms.
 */
export type AuditAgent = (
  db: Db,
  subject: { agent: AgentRow; workspace: WorkspaceRow },
  now: number,
) => Promise<AgentWarning[]>
