import { JsonScan, keptChars, type JsonRule, type JsonVerdict } from '../lib/json-scan.ts'

// Skills that an MCP server offers (SEP-2640) would pass by what the workspace says about skills: which agent has which. So agents are given
// none of them, unless an admin trusts the server for it. The proxy of a run host and the broker of a sandbox refuse what asks for
// them by the rule that stands here.
//
// Servers read messages with parsers of many kinds. The rule is the strictest of them: of several members with one key each counts, and keys, methods
// and addresses are the same in upper and lower case.

export const noSkills =
  'svc gives no skills of this MCP server to agents: those of the workspace are set with `svc skill`, and an admin may trust the server (`svc mcp update --trust-skills true`).'

export const noMessage =
  'the body is no message that svc can look through. It is one JSON text in UTF-8: an object, or a list of objects'

const visible = /^[!-~]*$/

/** Returns a text as the most lenient reader has it: blank and invisible characters left out, `%xx` decoded, in one case. */
function plain(text: string): string {
  // Most are, and a message may have millions.
  if (visible.test(text) && !text.includes('%')) return text.toLowerCase()
  return folded(
    text
      .replaceAll(/%([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
      .replaceAll(/[\p{C}\p{Z}]/gu, ''),
  )
}

/** Some letters have another one as their capital (`ſ` has `S`), and are the same to readers that ignore the case. */
const folded = (text: string): string => (visible.test(text) ? text.toLowerCase() : text.toUpperCase().toLowerCase())

const scheme = 'skill:'

export function isSkillAddress(uri: unknown): boolean {
  if (typeof uri !== 'string') return false
  const begin = plain(uri.slice(0, keptChars))
  // What is blank for so long hides what it is.
  return begin.startsWith(scheme) || (uri.length >= keptChars && begin.length < scheme.length)
}

const methods = 'skills/'

function isSkillMethod(method: string): boolean {
  const begin = plain(method.slice(0, keptChars))
  return begin.startsWith(methods) || (method.length >= keptChars && begin.length < methods.length)
}

// The places of a message at which the rule looks.
const place = {
  nothing: 0,
  body: 1,
  batch: 2,
  message: 3,
  method: 4,
  params: 5,
  list: 6,
  fields: 7,
  field: 8,
  address: 9,
} as const

/**
 * Members of parameters, however deep, that are addresses of resources: `uri` of `resources/read` and of the reference in
 * `completion/complete`, `resourceSubscriptions` of `subscriptions/listen`.
 */
const addresses: ReadonlySet<string> = new Set(['uri', 'uris', 'resourcesubscriptions'])

const rule: JsonRule = {
  root: place.body,
  opens(at, kind) {
    if (at === place.body || at === place.batch) {
      if (kind === 'object') return place.message
      return kind === 'array' && at === place.body ? place.batch : null
    }
    if (kind === 'scalar' || at === place.method || at === place.nothing) return at
    if (kind === 'object') return place.fields
    // Parameters may come by their order.
    return at === place.params ? place.list : at
  },
  member(at, key) {
    if (at === place.method) return place.method
    // Texts of C end at a zero.
    const name = folded(key.includes('\0') ? key.slice(0, key.indexOf('\0')) : key)
    if (at === place.message) return name === 'method' ? place.method : name === 'params' ? place.params : place.nothing
    // What is given to a tool or a prompt is its own affair.
    if (key === 'arguments') return place.nothing
    return addresses.has(name) ? place.address : place.field
  },
  watches: (at) => at === place.method || at === place.params || at === place.list || at === place.address,
  finds: (at, text) => (at === place.method ? isSkillMethod(text) : isSkillAddress(text)),
}

/** Looks for what asks for skills (`found`) in the body of a POST, as it comes. */
export const skillScan = (): JsonScan => new JsonScan(rule)

/** Looks through a whole body. */
export function scannedForSkills(body: Uint8Array): JsonVerdict {
  const scan = skillScan()
  scan.push(body)
  return scan.end()
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** Judges the headers that say what stands in the message (SEP-2243), for servers that go by them. */
export function headAsksForSkills(headers: Headers): boolean {
  if (textsOf(headers['mcp-method']).some(isSkillMethod)) return true
  // The name of a tool or of a prompt is no address.
  const isName = headers['mcp-method'] === 'tools/call' || headers['mcp-method'] === 'prompts/get'
  return !isName && textsOf(headers['mcp-name']).some(isSkillAddress)
}

/** Some are in base64 (`=?base64?...?=`). Several of one name are joined by commas. */
const textsOf = (value: string | string[] | undefined): string[] =>
  [value ?? []].flat().flatMap((all) =>
    [all, ...all.split(',')].map((text) => {
      const packed = /^\s*=\?base64\?([^?]*)\?=/i.exec(text)?.[1]
      return packed === undefined ? text : Buffer.from(packed, 'base64').toString('utf8')
    }),
  )

/** Returns why a server could read other bytes than those that are looked through; null: it could not. */
export function whyReadOtherwise(headers: Headers): string | null {
  const packed = String(headers['content-encoding'] ?? 'identity')
  if (packed.trim().toLowerCase() !== 'identity') return 'the body is packed, and svc could not look through it'
  const type = headers['content-type']
  const isJson = type === undefined || /^application\/json\s*(?:;\s*charset="?utf-?8"?\s*)?$/i.test(String(type).trim())
  return isJson ? null : 'the body is not of the type application/json in UTF-8'
}
