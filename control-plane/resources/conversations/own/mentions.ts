import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import type { Db } from '../../../db/open.ts'
import { isAgentVisible, type Viewer } from '../../agents/rules.ts'
import { listAgentsByReferences, matchReference } from '../../agents/store.ts'
import { listMembers, type MemberRow } from '../../members/store.ts'
import { mentionedNames, personMatcher } from './message-rules.ts'
import type { Mention } from '../message-store.ts'

/**
 * The people and live agents of the workspace that a text mentions. An agent wins over a person of the same name.
 * `viewer`: the writer, who cannot mention agents they may not see; null (the platform) sees all.
 */
export async function findMentions(
  db: Db,
  workspaceId: WorkspaceUuid,
  text: { body: string; viewer: Viewer | null },
): Promise<Mention[]> {
  const names = mentionedNames(text.body)
  if (names.length === 0) return []
  const { viewer } = text
  const references = names.map((name) => (name.startsWith('agt_') ? name : name.toLowerCase()))
  const agents = (await listAgentsByReferences(db, workspaceId, references)).filter(
    (agent) => agent.deletedAt === null && (viewer === null || isAgentVisible(agent, viewer)),
  )
  const found = new Map<string, Mention>()
  let matchPerson: ((name: string) => MemberRow | null) | null = null
  for (const [at, name] of names.entries()) {
    const agent = matchReference(agents, references[at]!)
    if (agent) {
      found.set(agent.id, { type: 'agent', id: agent.id })
      continue
    }
    matchPerson ??= personMatcher(await listMembers(db, workspaceId))
    const person = matchPerson(name)
    if (person) found.set(person.publicId, { type: 'user', id: person.publicId })
  }
  return [...found.values()]
}
