import { head } from '../../shared/lib/head.ts'
import type { WebhookEventRow } from '../resources/webhooks/event-store.ts'

// The words of a mail: plain text, in which what others wrote is quoted, and never a line of its own in the head of the message.

type Thing = Readonly<Record<string, unknown>>

const mostSubject = 150
const mostQuoted = 2_000

export interface Composed {
  subject: string
  body: string
}

/** What is told of one event: a line, what it says, and the commands that go on from there. */
export function composeOf({ type, change }: Pick<WebhookEventRow, 'type' | 'change'>, data: Thing): Composed {
  const id = oneLine(data['id'])
  switch (data['object']) {
    case 'run': {
      const subject = `Run${of(data['agent'])} ${verbs[type] ?? type}${about(data['task'])}`
      const why = oneLine(data['errorMessage'])
      const next = type === 'run.failed' ? [`svc why ${id}`, `svc run get ${id}`] : [`svc run get ${id}`]
      return composed(subject, { quoted: why === '' ? oneLine(data['errorCode']) : text(data['errorMessage']), next })
    }
    case 'approval': {
      const subject = `${type === 'approval.requested' ? 'Approval asked for' : 'Approval resolved'}${of(data['agent'])}: ${oneLine(data['prompt'])}`
      const next = [`svc approval get ${id}`]
      if (type === 'approval.requested') next.push(`svc approval approve ${id}`, `svc approval reject ${id}`)
      return composed(subject, { quoted: text(data['prompt']), next })
    }
    case 'question': {
      const subject = `Question ${verbs[type] ?? type}${of(data['agent'])}: ${oneLine(data['prompt'])}`
      const next = [`svc question get ${id}`]
      if (type === 'question.asked') next.push(`svc question answer ${id} "..."`)
      return composed(subject, { quoted: text(data['prompt']), next })
    }
    default: {
      const key = oneLine(data['key'])
      const moved = change === null ? 'is new' : `is ${oneLine(change['to'])} now`
      const name = key === '' ? id : key
      return composed(`Task ${name} ${moved}: ${oneLine(data['title'])}`, {
        quoted: '',
        next: [`svc task get ${name}`],
      })
    }
  }
}

/** One mail for all that waits. `isAll`: nothing waits beside what is listed. */
export function bundled(
  all: readonly Composed[],
  { workspace, isAll }: { workspace: string; isAll: boolean },
): Composed {
  const [first] = all
  const label = `[${oneLine(workspace)}] `
  const footer =
    'You get this by svc. `svc mail set --events run.failed` chooses what about, `svc mail set --events none` ends it.'
  if (all.length === 1 && first !== undefined && isAll)
    return { subject: shortened(label + first.subject, mostSubject), body: `${first.body}\n\n-- \n${footer}\n` }
  const count = isAll ? String(all.length) : `More than ${all.length}`
  const parts = all.map(({ body }) => body).join('\n\n----\n\n')
  const rest = isAll ? '' : '\n\nThere is more: `svc status` shows what waits for you.'
  return { subject: `${label}${count} things to look at`, body: `${parts}${rest}\n\n-- \n${footer}\n` }
}

const verbs: Readonly<Record<string, string>> = {
  'run.succeeded': 'succeeded',
  'run.failed': 'failed',
  'run.cancelled': 'was cancelled',
  'run.waiting': 'waits for an answer',
  'question.asked': 'asked',
  'question.answered': 'answered',
  'question.closed': 'closed without an answer',
}

function composed(subject: string, { quoted, next }: { quoted: string; next: readonly string[] }): Composed {
  const line = shortened(subject, mostSubject)
  const quote =
    quoted === ''
      ? ''
      : `\n\n${quoted
          .split('\n')
          .map((each) => `> ${each}`)
          .join('\n')}`
  return { subject: line, body: `${line}${quote}\n\n${next.map((each) => `    ${each}`).join('\n')}` }
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Thing)[name] : undefined

const of = (agent: unknown): string => {
  const handle = oneLine(field(agent, 'handle'))
  return handle === '' ? '' : ` of ${handle}`
}
const about = (task: unknown): string => {
  const title = oneLine(field(task, 'title'))
  return title === '' ? '' : ` on “${title}”`
}

/** Without what steers a terminal or a mail reader: control characters, and those that turn the order of others around. */
const text = (value: unknown): string =>
  shortened(
    (typeof value === 'string' ? value : '')
      .replaceAll(/\r\n?/g, '\n')
      .replaceAll(/[^\P{C}\n]/gu, ' ')
      .trim(),
    mostQuoted,
  )

const oneLine = (value: unknown): string => text(value).replaceAll(/\s+/g, ' ').trim()

const shortened = (value: string, chars: number): string =>
  value.length <= chars ? value : `${head(value, chars - 1)}…`
