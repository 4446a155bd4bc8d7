import type { TaskRow } from '../tasks/store.ts'
import { taskPrompt } from '../tasks/prompt.ts'

/** What an agent reads when a message wakes it. */

export interface Line {
  name: string
  body: string
}

export interface MessageFacts {
  conversation: { id: string; kind: 'dm' | 'channel'; title: string | null; taskId: string | null }
  author: { name: string; handle: string }
  messageId: string
  body: string
  /** What was said since the agent's own last message, oldest first. */
  earlier: readonly Line[]
}

const earlierChars = 8_000

/** `task`: the one that is talked about, when the agent is to work on it. */
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

/** The newest ones that fit. */
function earlierText(earlier: readonly Line[]): string {
  const lines: string[] = []
  let left = earlierChars
  for (const { name, body } of earlier.toReversed()) {
    const line = `${name}: ${body}`
    if (line.length > left) break
    left -= line.length
    lines.unshift(line)
  }
  return lines.length === 0 ? '' : `Said before, since you last wrote there:\n\n${lines.join('\n\n')}`
}
