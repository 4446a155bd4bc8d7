import { fieldAt, listAt, textAt } from '../replies/fields.ts'

/** Run events in a form that people can read. Pieces of text are joined until another event comes. */
export interface Transcript {
  lines(event: unknown): string[]
  /** Returns the text that is still held back. */
  end(): string[]
}

const maxShown = 2_000

export function createTranscript(): Transcript {
  let text = ''
  const flush = () => {
    const held = text
    text = ''
    return held.trim() === '' ? [] : [held]
  }
  return {
    lines(event) {
      if (textAt(event, 'kind') === 'text') {
        text += outputOf(event)
        return []
      }
      const line = lineOf(event)
      return line === null ? [] : [...flush(), line]
    },
    end: flush,
  }
}

/** Null for events that tell a reader nothing. */
function lineOf(event: unknown): string | null {
  const data = (...path: string[]) => textAt(event, 'data', ...path)
  switch (textAt(event, 'kind')) {
    case 'thinking':
      return `[thinking] ${data('text') ?? ''}`
    case 'tool_call':
      return `[tool] ${data('name') ?? ''} ${shorten(JSON.stringify(fieldAt(event, 'data', 'input') ?? null))}`
    case 'tool_result':
      return `[${fieldAt(event, 'data', 'isError') === true ? 'tool failed' : 'result'}] ${shorten(data('output') ?? '')}`
    case 'permission': {
      const asked = data('ask', 'safeSummary')
      const decided = `${data('name') ?? ''}: ${data('decision') ?? ''}`
      return `[permission] ${asked === null ? decided : `a person is asked: ${asked}`}`
    }
    case 'input':
      return `[input] ${data('text') ?? ''}`
    case 'error':
      return `[error] ${data('class') ?? ''}: ${data('message') ?? ''}`
    case 'result':
      return `[answer] ${data('text') ?? ''}`
    case 'raw':
      return outputOf(event)
    case 'gap':
      return `[${lostOf(event)} not kept: ${data('reason') ?? ''}]`
    case 'folder_shared':
      return `[folder] at work here, too: ${listAt(event, 'data', 'runIds')
        .filter((runId) => typeof runId === 'string')
        .join(', ')}`
    case 'ended':
      return `[ended] ${[data('exitReason'), data('message')].filter((part) => part !== null).join(': ')}`
    default:
      return null
  }
}

function lostOf(event: unknown): string {
  if (fieldAt(event, 'data', 'unknown') === true) return 'an amount of output that is not known was'
  return `${JSON.stringify(fieldAt(event, 'data', 'bytes'))} bytes were`
}

function outputOf(event: unknown): string {
  const base64 = textAt(event, 'data', 'base64')
  return textAt(event, 'data', 'text') ?? (base64 === null ? '' : Buffer.from(base64, 'base64').toString('utf8'))
}

const shorten = (text: string) =>
  text.length > maxShown ? `${text.slice(0, maxShown)}… (${text.length - maxShown} more)` : text
