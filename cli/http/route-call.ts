import type { Command } from '../arguments/command.ts'
import { hasPages } from '../arguments/parse.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { textAt } from '../replies/fields.ts'
import type { ApiCall } from '../calls/api-call.ts'
import type { Client } from '../calls/client.ts'
import type { Shape } from '../output/shape.ts'
import type { NameThings } from '../output/things.ts'
import { pathSegment } from './path-segment.ts'
import type { Values } from '../arguments/values.ts'

/** A command that is one call: sends its values and prints the reply. */
export const callRoute: Flow = async (context) => {
  const client = await context.connect()
  await send(context, client, { params: await fallbacks(context, client) })
}

/** Makes the command's call and prints the reply. */
export async function sendAndPrint(context: CommandContext, changes?: CallChanges): Promise<void> {
  await send(context, await context.connect(), changes)
}

async function send(context: CommandContext, client: Client, changes?: CallChanges): Promise<void> {
  const call = callOf(context, changes)
  if (needsPages(context)) {
    const { printPages } = await import('./print-pages.ts')
    const { command } = context
    await printPages(context, client, { call, perPage: perPageOf(command), shape: shapeOf(context) })
  } else await printReply(context, (await client.call(call)).body)
}

/** Whether more rows are asked for than one page has. */
function needsPages({ command, values }: CommandContext): boolean {
  if (!hasPages(command)) return false
  const limit = values.query['limit']
  return values.local['all'] === true || (typeof limit === 'number' && limit > perPageOf(command))
}

/** The most rows of a page. */
const perPageOf = ({ flags }: Command): number => flags.find(({ perPage }) => perPage !== undefined)?.perPage ?? 100

/** Values for parameters that were left out and have a fallback: the workspace of the caller. */
async function fallbacks({ command, values }: CommandContext, client: Client): Promise<Record<string, string>> {
  const flag = command.flags.find((candidate) => candidate.fallback === 'own_workspace')
  const name = flag?.target?.split('.')[1]
  if (name === undefined || values.params[name] !== undefined) return {}
  const known = client.caller.ownWorkspaceId
  if (known !== null) return { [name]: known }
  const { body } = await client.call({ method: 'GET', path: '/api/v1/workspaces' })
  return { [name]: textAt(body, 'id') ?? '' }
}

export interface CallChanges {
  params?: Record<string, string>
  query?: Record<string, unknown>
  body?: Record<string, unknown> | undefined
}

export function callOf(context: CommandContext, changes: CallChanges = {}): ApiCall {
  const { command, values } = context
  const route = routeOf(command)
  const body = { ...values.body, ...changes.body }
  return {
    method: route.method,
    path: fillPath(route.path, withRun(context, { ...values.params, ...changes.params })),
    query: { ...values.query, ...changes.query },
    ...(route.method === 'GET' || Object.keys(body).length === 0 ? {} : { body }),
    isKeyed: route.takesKey,
  }
}

/** Replaces `current` by the run this shell is in. If none is known, the server refuses it. */
export function withRun({ env }: Pick<CommandContext, 'env'>, params: Values['params']): Values['params'] {
  return params['runId'] === 'current' && env.runId !== null ? { ...params, runId: env.runId } : params
}

export function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathSegment(params[name] ?? ''))
}

/** `look`: of what is printed, where that is not the reply of the command's own route. */
export async function printReply(context: CommandContext, body: unknown, look?: string): Promise<void> {
  const { command, out } = context
  const { print } = command
  if (print !== undefined && !out.isJsonWanted) {
    out.exact(textAt(body, print.stdout) ?? '')
    if (print.stderr !== undefined) out.message(`${print.stderr}: ${textAt(body, print.stderr) ?? ''}`)
    return
  }
  await out.result(body, look === undefined ? shapeOf(context) : { look, nameThings: nameThingsBy(context) })
}

/** What people see of the command's reply. */
function shapeOf(context: CommandContext): Shape {
  const { command, values } = context
  const nextFlag = nextFlagOf(command, values)
  const hasAll = hasPages(command) && nextFlag !== '--ending-before'
  return { look: command.shows, list: command.list, nextFlag, hasAll, nameThings: nameThingsBy(context) }
}

/** Asks the server what people call the things of a reply, where it is shown to people. */
export const nameThingsBy =
  ({ connect }: Pick<CommandContext, 'connect'>): NameThings =>
  async (wanted) =>
    (await import('./thing-names.ts')).thingNames((await connect()).caller, wanted)

/** The flag that reads the next page: `--after` of nearly all lists, but where a list is read upwards. */
export function nextFlagOf(command: Command, { query }: Pick<Values, 'query'>): string | undefined {
  if (query['endingBefore'] !== undefined) return '--ending-before'
  if (!hasPages(command)) return undefined
  const byId = command.flags.find(({ target }) => target === 'query.startingAfter')
  return byId === undefined || byId.aliases?.includes('after') === true ? '--after' : `--${byId.name}`
}

function routeOf(command: Command) {
  if (command.route === null) throw new Error(`${command.name} is no call of the API`)
  return command.route
}
