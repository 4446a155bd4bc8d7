import type { TaskRow } from '../tasks/store.ts'
import { taskPrompt } from '../tasks/present.ts'

/** The prompt of an agent that a message wakes. */

export interface Line {
  name: string
  body: string
}

export interface MessageFacts {
  conversation: { id: string; kind: 'dm' | 'channel'; title: string | null; taskId: string | null }
  author: { name: string; handle: string }
  messageId: string
  body: string
  /** The messages since the agent's own last one, oldest first. */
  earlier: readonly Line[]
}

const earlierChars = 8_000

/** `task`: the discussed task, if the agent should work on it. */
export function messagePrompt(facts: MessageFacts, task: TaskRow | null): string {
  const { conversation, author } = facts
  const who = `${author.name} (${author.handle})`
  if (task !== null)
    return taskPrompt(task, {
      reason: `${who} commented on this task.`,
      extra: [earlierText(facts.earlier), `The comment (${facts.messageId}):\n\n${facts.body}`, answerNote('comment')]
        .filter((part) => part !== '')
        .join('\n\n'),
    })
  const place = conversation.title === null ? conversation.id : `“${conversation.title}” (${conversation.id})`
  const where = conversation.taskId !== null ? 'on a task, in' : conversation.kind === 'dm' ? 'to you in' : 'in'
  return [`${who} wrote ${where} ${place}:`, facts.body, earlierText(facts.earlier), answerNote('message')]
    .filter((part) => part !== '')
    .join('\n\n')
}

const answerNote = (kind: 'comment' | 'message') => `Your final answer is posted there as your ${kind}.`

const earlierText = (earlier: readonly Line[]): string => textOf('Said before, since you last wrote there:', earlier)

/** Returns what a session is told that knows nothing of the conversation; `''`: nothing was said. */
export const forgottenText = (lines: readonly Line[]): string =>
  textOf('You do not remember this conversation, since this is a new session. Said there before:', lines)

/** The newest messages that fit. */
function textOf(heading: string, earlier: readonly Line[]): string {
  const lines: string[] = []
  let left = earlierChars
  for (const { name, body } of earlier.toReversed()) {
    const line = `${name}: ${body}`
    if (line.length > left) break
    left -= line.length
    lines.unshift(line)
  }
  return lines.length === 0 ? '' : `${heading}\n\n${lines.join('\n\n')}`
}
