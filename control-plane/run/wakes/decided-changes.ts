import type { Db } from '../../db/open.ts'
import { outcomeText } from '../../resources/platform-changes/present.ts'
import { listUntold } from '../../resources/platform-changes/store.ts'
import type { ReadyWake } from './wake.ts'

/** The text that tells a run of the changes that its agent had asked for, and the ids of those of which it tells. */
export interface DecidedChanges {
  /** `''`: there is no news. */
  text: string
  ids: readonly string[]
}

export const noDecidedChanges: DecidedChanges = { text: '', ids: [] }

/** Changes told in one prompt; what is beyond is told to the run after it. */
const mostTold = 10

/**
 * Reads what became of the changes of this agent that no run was told about. It holds no words of the person who
 * resolved them: a run follows those of whoever asked for it. What the wake says itself is not said twice.
 */
export async function decidedChangesFor(db: Db, { agent, tells = [] }: ReadyWake): Promise<DecidedChanges> {
  const changes = await listUntold(db, { agentRef: agent.id, limit: mostTold })
  const news = changes.filter(({ id }) => !tells.includes(id))
  const lines = news.map((change) => `- ${change.id}, ${outcomeText(change)}`)
  return {
    text: lines.length === 0 ? '' : `${heading}\n\n${lines.join('\n')}`,
    ids: [...new Set([...tells, ...changes.map(({ id }) => id)])],
  }
}

/** Returns the prompt without what it says first of decided changes, which is one line each below the heading. */
export function withoutNews(prompt: string): string {
  if (!prompt.startsWith(`${heading}\n\n`)) return prompt
  const end = prompt.indexOf('\n\n', heading.length + 2)
  return end === -1 ? prompt : prompt.slice(end + 2)
}

const heading =
  'For your knowledge: changes that you asked for before were decided (`svc approval get ID` shows one of them):'
