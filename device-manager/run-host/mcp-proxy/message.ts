import { parseJsonText } from '../../../shared/lib/lines.ts'
import { isSkillAddress } from './skill-entries.ts'

/** The parts of a message of JSON-RPC by which the proxy decides how it passes it on. */
export interface ProxiedMessage {
  /** The id of the request; null: the message is no request, several in one, or not understood. */
  id: string | number | null
  methods: readonly string[]
  /** Addresses of resources that it reads. */
  uris: readonly string[]
}

export function messageIn(body: Buffer | null): ProxiedMessage {
  // A body that is no JSON is passed on: the server says what is wrong with it.
  const said = body === null ? null : parseJsonText(body.toString('utf8'))
  const all: unknown[] = Array.isArray(said) ? said : [said]
  const read = all.map(readMessage)
  return {
    id: Array.isArray(said) ? null : (read[0]?.id ?? null),
    methods: read.map(({ method }) => method),
    uris: read.flatMap(({ uri }) => (uri === null ? [] : [uri])),
  }
}

function readMessage(said: unknown) {
  const { id, method, params } = fieldsOf(said)
  const { uri } = fieldsOf(params)
  return {
    id: typeof id === 'string' || typeof id === 'number' ? id : null,
    method: typeof method === 'string' ? method : '',
    uri: typeof uri === 'string' ? uri : null,
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

/**
 * Skills that a server offers (SEP-2640) would pass by what the workspace says about skills: which agent has which. So a harness is
 * given none of them, unless an admin trusts the server for it.
 */
export const asksForSkills = ({ methods, uris }: ProxiedMessage): boolean =>
  methods.some((method) => method.startsWith('skills/')) || uris.some(isSkillAddress)
