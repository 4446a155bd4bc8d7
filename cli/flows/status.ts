import type { CommandContext, Flow } from '../context/context.ts'
import type { Client } from '../calls/client.ts'
import { ApiFailure, CliError, usageError } from '../errors/cli-error.ts'
import { nameThingsBy } from '../http/route-call.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'

/** Of each kind so many are shown; there is a list for all of them. */
const most = 20
const defaultHours = 24
/** Of so many runs at work the last line is read, in so many events: those of a flood have 16 KiB each, and `--watch` reads them again. */
const mostLines = 10
const lookedAt = 8

/** `status`: what waits for a person, what failed lately, what works, what waits and why, and devices that are away. */
export const status: Flow = async (context) => {
  const client = await context.connect()
  const read = () => readStatus(context, client)
  if (context.values.local['watch'] === true) await watch(context, read)
  else await context.out.result(await read(), shapeFor(context))
}

const shapeFor = (context: CommandContext) => ({ look: 'status', nameThings: nameThingsBy(context) })
const againMs = 3_000

/** Shows it again and again. While the server is away, what was there stays. */
async function watch(context: CommandContext, read: () => Promise<object>): Promise<never> {
  const { out, world } = context
  const shape = shapeFor(context)
  const isScreen = out.isTerminal && out.format !== 'json'
  let shown: object | null = null
  let told = ''
  for (;;) {
    let below = 'svc looks again every three seconds. Ctrl-C ends it.'
    try {
      shown = await read()
    } catch (error) {
      if (!isOfTheMoment(error)) throw error
      below = 'The server does not answer; svc goes on trying.'
      if (!isScreen && told !== below) out.message(`svc: ${below}`)
      if (!isScreen) told = below
    }
    if (isScreen) await out.screen(shown ?? {}, shape, below)
    else if (shown !== null && JSON.stringify(shown) !== told) {
      await out.result(shown, shape)
      told = JSON.stringify(shown)
      await out.drained()
    }
    await world.sleep(againMs)
  }
}

const isOfTheMoment = (error: unknown): boolean =>
  (error instanceof CliError && error.exit === 'unreachable') ||
  (error instanceof ApiFailure && (error.status === 429 || error.status >= 500))

async function readStatus(context: CommandContext, client: Client) {
  const list = async (path: string, query: Record<string, unknown>) => {
    const { body } = await client.call({ method: 'GET', path: `/api/v1/${path}`, query })
    return listAt(body, 'data')
  }
  const since = context.world.now() - hoursOf(context) * 3_600_000
  const [approvals, questions, lastFailed, live, waiting, devices] = await Promise.all([
    list('approvals', { status: 'open', limit: most }),
    list('questions', { status: 'open', limit: most }),
    list('runs', { status: ['failed'], limit: most }),
    list('runs', { status: ['running'], limit: most }),
    list('runs', { status: ['queued'], limit: most }),
    devicesOf(client),
  ])
  const working = await Promise.all(live.map((run, at) => (at < mostLines ? withLastLine(client, run) : run)))
  const failed = lastFailed.filter((run) => Date.parse(textAt(run, 'completedAt') ?? '') >= since)
  const away = devices.filter((device) => textAt(fieldAt(device, 'liveness'), 'status') === 'disconnected')
  const found = { approvals, questions, failed, working, waiting, limits: limitsOf(devices, 'limits'), away }
  const limitsInUse = limitsOf(devices, 'limitsInUse')
  return { summary: summaryOf(found), ...found, limitsInUse, ...nextOf(found) }
}

/** Reads what the run said or began last. Who sees a run may see its events; one that is gone by now shows nothing. */
async function withLastLine(client: Client, run: unknown): Promise<unknown> {
  const query = { sort: 'desc', limit: lookedAt }
  try {
    const { body } = await client.call({ method: 'GET', path: `/api/v1/runs/${textAt(run, 'id')}/events`, query })
    const { lastLineOf } = await import('../output/last-line.ts')
    return { ...(run as object), lastLine: lastLineOf(listAt(body, 'data')) }
  } catch (error) {
    if (error instanceof ApiFailure && error.status < 500) return run
    throw error
  }
}

/** An agent is told of no devices: those are the affair of people. */
async function devicesOf(client: Client): Promise<readonly unknown[]> {
  try {
    const { body } = await client.call({ method: 'GET', path: '/api/v1/devices' })
    return listAt(body, 'devices')
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 403) return []
    throw error
  }
}

/** What devices say of their providers' limits. One account on several devices has one. */
function limitsOf(devices: readonly unknown[], field: 'limits' | 'limitsInUse') {
  const found = new Map<string, { device: string | null }>()
  for (const device of devices) {
    const name = textAt(device, 'displayName')
    for (const limit of listAt(device, field)) {
      const key = JSON.stringify(limit)
      const before = found.get(key)
      found.set(key, { ...(limit as object), device: before === undefined ? name : `${before.device}, ${name}` })
    }
  }
  return [...found.values()]
}

type Found = Readonly<
  Record<'approvals' | 'questions' | 'failed' | 'working' | 'waiting' | 'limits' | 'away', readonly unknown[]>
>

function hoursOf({ values }: CommandContext): number {
  const given = values.local['hours']
  const hours = given === undefined ? defaultHours : Number(given)
  if (Number.isFinite(hours) && hours > 0 && hours <= 24 * 365) return hours
  throw usageError('--hours takes a number of hours from 1 to 8760.', 'Type, for example, `svc status --hours 72`.')
}

function summaryOf({ approvals, questions, failed, working, waiting, limits, away }: Found): string {
  const parts = [
    told(approvals, 'approval waits for an answer', 'approvals wait for an answer'),
    told(questions, 'question waits for an answer', 'questions wait for an answer'),
    told(failed, 'run has failed lately', 'runs have failed lately'),
    told(working, 'run works', 'runs work'),
    told(waiting, 'run waits to start', 'runs wait to start'),
    told(limits, 'limit of a provider is reached', 'limits of providers are reached'),
    told(away, 'device is away', 'devices are away'),
  ].filter((part) => part !== null)
  return parts.length === 0 ? 'Nothing works, and nothing waits for you.' : `${parts.join('; ')}.`
}

function told(all: readonly unknown[], one: string, several: string): string | null {
  if (all.length === 0) return null
  return all.length === 1 ? `1 ${one}` : `${all.length}${all.length === most ? ' or more' : ''} ${several}`
}

/** The commands for what comes first. */
function nextOf({ approvals, questions, failed, waiting }: Found): { next: string | null; answer?: string } {
  const id = (all: readonly unknown[]) => textAt(all[0], 'id')
  if (approvals.length > 0)
    return { next: `svc approval get ${id(approvals)}`, answer: `svc approval approve ${id(approvals)}` }
  if (questions.length > 0) return { next: `svc question answer ${id(questions)} "..."` }
  if (failed.length > 0) return { next: `svc why ${id(failed)}` }
  return { next: waiting.length > 0 ? `svc why ${id(waiting)}` : null }
}
