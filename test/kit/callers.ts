import type { AgentCaller, PersonCaller } from '../../control-plane/http/callers.ts'
import { idFrom } from '../../shared/lib/ids.ts'

// Callers of one workspace, for tests of rules.

export const personCaller = (role: PersonCaller['role'], userId = 'me'): PersonCaller => ({
  kind: 'person',
  via: 'login_token',
  personUuid: idFrom(userId),
  personRef: idFrom('usr_1'),
  name: 'n',
  email: 'e',
  workspaceId: idFrom('w'),
  role,
})

export const agentCaller = (changes: Partial<AgentCaller> = {}): AgentCaller => ({
  kind: 'agent',
  agentRef: idFrom('agt_me'),
  agentUuid: idFrom('u'),
  workspaceId: idFrom('w'),
  runId: idFrom('r'),
  fence: 1,
  ...changes,
})
