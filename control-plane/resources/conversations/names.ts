import { hasPrefix, type ActorRef, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Db } from '../../db/open.ts'
import type { Speaker } from '../../trust/quote.ts'
import { handleText } from '../agents/present.ts'
import { listAgentsByIds } from '../agents/store.ts'
import { listMembers } from '../members/store.ts'
import { personHandle } from './own/message-rules.ts'

/** The names of people and agents as authors. */
export interface Name {
  handle: string
  name: string
}

export type NameOf = (subject: { type: 'user' | 'agent' | 'system'; id: string | null }) => Name

/** The names of these subjects, including deleted agents and people who left. */
export async function loadNames(
  db: Db,
  workspaceId: WorkspaceUuid,
  subjects: readonly { type: 'user' | 'agent' | 'system'; id: string | null }[],
): Promise<NameOf> {
  const ids = (type: 'user' | 'agent') =>
    new Set(subjects.filter((subject) => subject.type === type).flatMap(({ id }) => (id === null ? [] : [id])))
  const [people, agents] = [ids('user'), ids('agent')]
  const names = new Map<string, Name>()
  for (const agent of await listAgentsByIds(
    db,
    [...agents].filter((id) => hasPrefix(id, 'agt_')),
  ))
    names.set(agent.id, { handle: handleText(agent), name: agent.name })
  if (people.size > 0)
    for (const person of await listMembers(db, workspaceId))
      if (people.has(person.publicId))
        names.set(person.publicId, { handle: `@${personHandle(person)}`, name: person.name })
  return ({ type, id }) => {
    if (type === 'system' || id === null) return { handle: '@system', name: 'System' }
    return names.get(id) ?? { handle: id, name: type === 'user' ? 'Former member' : 'Former agent' }
  }
}

/** Whoever this is, as a prompt names them. */
export async function loadSpeaker(
  db: Db,
  workspaceId: WorkspaceUuid,
  subject: { type: 'user' | 'agent' | 'system'; id: ActorRef | null },
): Promise<Speaker> {
  return { id: subject.id, ...(await loadNames(db, workspaceId, [subject]))(subject) }
}
