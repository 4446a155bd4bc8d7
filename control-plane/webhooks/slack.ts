import { pingType } from '../../shared/api/webhook-fields.ts'
import type { WebhookEventRow } from '../resources/webhooks/event-store.ts'
import { head } from '../../shared/lib/head.ts'

// One line about an event, in the form of incoming webhooks of Slack.

type Thing = Readonly<Record<string, unknown>>

const mostChars = 500

const verbs: Readonly<Record<string, string>> = {
  'run.succeeded': 'succeeded',
  'run.failed': 'failed',
  'run.cancelled': 'was cancelled',
  'run.waiting': 'waits for an answer',
  'question.answered': 'answered',
  'question.closed': 'closed without an answer',
}

export function slackTextOf(
  { type, change }: Pick<WebhookEventRow, 'type' | 'change'>,
  data: Thing,
  publicUrl: string,
): string {
  if (type === pingType) return 'svc can reach this channel.'
  const link = `<${publicUrl}/api/v1/${pathOf(data)}|${text(data['key'] ?? data['id'])}>`
  switch (data['object']) {
    case 'run':
      return `Run ${link}${of(data['agent'])} ${verbs[type] ?? type}${about(data['task'])}${because(data['errorCode'])}`
    case 'approval':
      return type === 'approval.requested'
        ? `Approval ${link} is asked for: ${text(data['prompt'])}`
        : `Approval ${link} is resolved (${text(field(data['result'], 'outcome'))}): ${text(data['prompt'])}`
    case 'question':
      return type === 'question.asked'
        ? `Question ${link} is asked: ${text(data['prompt'])}`
        : `Question ${link} is ${verbs[type] ?? type}: ${text(data['prompt'])}`
    default: {
      const moved = change === null ? '' : ` is ${text(change['to'])} now, and was ${text(change['from'])}`
      return `Task ${link}${moved === '' ? ' is new' : moved}: ${text(data['title'])}`
    }
  }
}

const pathOf = ({ object, id }: Thing): string => `${String(object)}s/${encodeURIComponent(String(id))}`

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Thing)[name] : undefined

const of = (agent: unknown): string => {
  const handle = field(agent, 'handle')
  return typeof handle === 'string' ? ` of ${text(handle)}` : ''
}
const about = (task: unknown): string => {
  const title = field(task, 'title')
  return typeof title === 'string' ? ` on “${text(title)}”` : ''
}
const because = (code: unknown): string => (typeof code === 'string' ? ` (${text(code)})` : '')

/**
 * What others wrote, on one line and without meaning for Slack: it reads `<`, `>` and `&` as mentions, links and entities, and shows them
 * when they are escaped.
 */
function text(value: unknown): string {
  const line = (typeof value === 'string' ? value : '').replaceAll(/\s+/g, ' ').trim()
  const short = line.length > mostChars ? `${head(line, mostChars)}…` : line
  return short.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
