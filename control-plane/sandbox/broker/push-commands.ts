// Reads the beginning of a push, before its pack (gitprotocol-pack(5), "Reference Update Request"): lines that each say their length, the first of
// them with the abilities of the client, and an empty one at the end. A command that is not known here is refused: a git host may understand it.

export interface PushCommand {
  oldId: string
  newId: string
  ref: string
}

export interface PushHead {
  commands: PushCommand[]
  abilities: ReadonlySet<string>
  /** The length in bytes, with the empty line. */
  length: number
}

/** The push is refused. The message is for people. */
export class PushRefused extends Error {
  override name = 'PushRefused'
  /** The head that the client has sent until then, to answer in its words. */
  readonly head: Pick<PushHead, 'commands' | 'abilities'>

  constructor(message: string, head: Pick<PushHead, 'commands' | 'abilities'>) {
    super(message)
    this.head = head
  }
}

/** A result branch, a rescue branch, and what is refused anyway. */
const mostBytes = 16 * 1024

/** Abilities that change nothing but how the push is answered and packed. */
const known =
  /^(?:report-status(?:-v2)?|side-band-64k|quiet|atomic|ofs-delta|object-format=sha(?:1|256)|agent=[\x21-\x7e]{1,200}|session-id=[\x21-\x7e]{1,200})$/
const command = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) ([^\0\n]+)$/

/** Reads the head of a push; null: not all of it is there. Throws PushRefused. */
export function readPushHead(bytes: Buffer): PushHead | null {
  const head = { commands: [] as PushCommand[], abilities: new Set<string>() }
  const refuse = (message: string): never => {
    throw new PushRefused(message, head)
  }
  for (let at = 0; ;) {
    if (at > mostBytes) return refuse('The push names too many refs.')
    if (bytes.length < at + 4) return null
    const length = lengthAt(bytes, at)
    if (length === 0) return { ...head, length: at + 4 }
    if (length === null || length <= 4 || length > mostBytes) return refuse('The push is not of a form that git sends.')
    if (bytes.length < at + length) return null
    const whole = bytes.subarray(at + 4, at + length)
    const line = whole.at(-1) === 0x0a ? whole.subarray(0, -1) : whole
    at += length
    const end = line.indexOf(0)
    const isFirst = head.commands.length === 0
    if (end !== -1 && !isFirst) return refuse('The push is not of a form that git sends.')
    const text = textOf(end === -1 ? line : line.subarray(0, end))
    const [, oldId, newId, ref] = command.exec(text ?? '') ?? []
    const others = end === -1 ? [] : (textOf(line.subarray(end + 1)) ?? '\0').split(' ').filter(Boolean)
    if (oldId !== undefined && newId !== undefined && ref !== undefined && oldId.length === newId.length)
      head.commands.push({ oldId, newId, ref })
    for (const ability of others) if (known.test(ability)) head.abilities.add(ability)
    if (head.commands.length === 0 || (!isFirst && head.commands.at(-1)?.ref !== ref))
      return refuse('The push asks for more than to move branches: shallow and signed pushes are refused.')
    const strange = others.find((ability) => !known.test(ability))
    if (strange !== undefined) return refuse('The push has options that the broker does not know.')
  }
}

function lengthAt(bytes: Buffer, at: number): number | null {
  const digits = bytes.toString('latin1', at, at + 4)
  return /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : null
}

/** Decodes UTF-8; null: the bytes are no text. */
function textOf(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

const isZero = (id: string) => /^0+$/.test(id)

/** The branches of a run; `result` null: it may push no more, but for what is to be rescued. */
export interface PushBranches {
  result: string | null
  rescue: string
}

/** Tells whether a push asks to move this branch. */
export const namesBranch = ({ commands }: Pick<PushHead, 'commands'>, branch: string | null): boolean =>
  commands.some(({ ref }) => ref === `refs/heads/${branch}`)

/** The commands of which it must be seen that they go forward from what is there. Throws PushRefused. */
export function judgePush(
  { commands, abilities }: Pick<PushHead, 'commands' | 'abilities'>,
  may: PushBranches,
): PushCommand[] {
  const refuse = (message: string): never => {
    throw new PushRefused(message, { commands, abilities })
  }
  const result = may.result === null ? null : `refs/heads/${may.result}`
  const rescue = `refs/heads/${may.rescue}`
  const refs = new Set<string>()
  const forward: PushCommand[] = []
  for (const each of commands) {
    if (each.ref !== result && each.ref !== rescue) refuse(`This run may push to ${may.result ?? may.rescue} alone.`)
    if (refs.has(each.ref)) refuse('The push names one branch twice.')
    refs.add(each.ref)
    if (isZero(each.newId)) refuse('A run deletes no branch.')
    // The other one is of this run alone: nobody else's work is there.
    if (each.ref === result && !isZero(each.oldId) && each.oldId !== each.newId) forward.push(each)
  }
  return forward
}

/** The answer of a git host to a push of which it takes nothing. */
export function refusedPushReport(
  { commands, abilities }: Pick<PushHead, 'commands' | 'abilities'>,
  message: string,
): Buffer | null {
  if (commands.length === 0 || !(abilities.has('report-status') || abilities.has('report-status-v2'))) return null
  const report = [line('unpack ok\n'), ...commands.map(({ ref }) => line(`ng ${ref} ${message}\n`)), '0000'].join('')
  return Buffer.from(abilities.has('side-band-64k') ? `${line(`\u0001${report}`)}0000` : report)
}

const line = (text: string): string => (Buffer.byteLength(text) + 4).toString(16).padStart(4, '0') + text
