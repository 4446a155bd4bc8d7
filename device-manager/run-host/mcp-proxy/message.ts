import { parseJsonText } from '../../../shared/lib/lines.ts'

/** The parts of a message of JSON-RPC by which the proxy decides how it passes it on. */
export interface ProxiedMessage {
  /** The id of the request; null: the message is no request, several in one, or not understood. */
  id: string | number | null
  methods: readonly string[]
}

export function messageIn(body: Buffer | null): ProxiedMessage {
  // What is no JSON reaches servers alone that are trusted for skills: they say what is wrong with it.
  const said = body === null ? null : parseJsonText(body.toString('utf8'))
  const all: unknown[] = Array.isArray(said) ? said : [said]
  const read = all.map(readMessage)
  return {
    id: Array.isArray(said) ? null : (read[0]?.id ?? null),
    methods: read.map(({ method }) => method),
  }
}

function readMessage(said: unknown) {
  const { id, method } = fieldsOf(said)
  return {
    id: typeof id === 'string' || typeof id === 'number' ? id : null,
    method: typeof method === 'string' ? method : '',
  }
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/** Requests that do nothing: they may be sent a second time. A call of a tool never is. */
const repeatable =
  /^(?:initialize|ping|server\/discover|completion\/complete|resources\/read|subscriptions\/listen|notifications\/initialized|(?:[a-z]+\/)+list|prompts\/get)$/

export const mayRepeat = ({ methods }: ProxiedMessage): boolean => methods.every((method) => repeatable.test(method))

const lists: ReadonlySet<string> = new Set(['resources/list', 'resources/templates/list'])
/** The message asks for a list of resources, among which may be skills. */
export const asksForList = ({ methods }: ProxiedMessage): boolean => methods.some((method) => lists.has(method))
