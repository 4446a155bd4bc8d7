import type { Command } from '../arguments/command.ts'
import type { CommandContext, Flow } from '../context/context.ts'
import { textAt } from '../replies/fields.ts'
import type { ApiCall } from '../calls/api-call.ts'
import type { Client } from '../calls/client.ts'
import { pathSegment } from './path-segment.ts'
import type { Values } from '../arguments/values.ts'

/** A command that is one call: sends its values and prints the reply. */
export const callRoute: Flow = async (context) => {
  const client = await context.connect()
  const { body } = await client.call(callOf(context, { params: await fallbacks(context, client) }))
  await printReply(context, body)
}

/** Makes the command's call and prints the reply. */
export async function sendAndPrint(context: CommandContext, changes?: CallChanges): Promise<void> {
  const client = await context.connect()
  const { body } = await client.call(callOf(context, changes))
  await printReply(context, body)
}

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

export async function printReply({ command, out, values }: CommandContext, body: unknown): Promise<void> {
  const { print } = command
  if (print !== undefined && !out.isJsonWanted) {
    out.exact(textAt(body, print.stdout) ?? '')
    if (print.stderr !== undefined) out.message(`${print.stderr}: ${textAt(body, print.stderr) ?? ''}`)
    return
  }
  await out.result(body, columnsFor(command, values), nextFlagOf(command, values))
}

/**
 * The flag that reads the next page. Some lists page by `after`, others by the ids of their rows in the direction of
 * reading.
 */
export function nextFlagOf({ flags }: Command, { query }: Pick<Values, 'query'>): string | undefined {
  const names = query['endingBefore'] === undefined ? ['after', 'starting-after'] : ['ending-before']
  const flag = flags.find(({ name }) => names.includes(name))
  return flag === undefined ? undefined : `--${flag.name}`
}

function routeOf(command: Command) {
  if (command.route === null) throw new Error(`${command.name} is no call of the API`)
  return command.route
}

/** A list of deleted files says what can be restored, which means nothing for others. */
function columnsFor({ name }: Command, { query }: Values): readonly string[] | undefined {
  if (name !== 'file list' || query['status'] !== 'deleted') return columnsOf[name]
  return ['id', 'name', 'sizeBytes', 'restorableUntil', 'description', 'createdAt']
}

/** The columns of lists for people. Other lists show the most telling fields. */
const columnsOf: Readonly<Record<string, readonly string[]>> = {
  'agent list': ['id', 'handle', 'name', 'status', 'harness', 'environment', 'lastRunAt'],
  'agent get': ['id', 'handle', 'name', 'status', 'harness', 'environment', 'lastRunAt'],
  'run list': ['id', 'status', 'agent.handle', 'triggerSource', 'gateReason', 'environment.deviceName', 'createdAt'],
  'run get': ['id', 'status', 'agent.handle', 'triggerSource', 'gateReason', 'environment.deviceName', 'createdAt'],
  'run events': ['seq', 'kind', 'createdAt', 'data'],
  'conversation list': ['id', 'kind', 'title', 'agentParticipantCount', 'unreadCount', 'lastMessagePreview'],
  'conversation message list': ['id', 'author.id', 'createdAt', 'body'],
  'comment list': ['id', 'author.handle', 'createdAt', 'body'],
  'task comment list': ['id', 'author.handle', 'createdAt', 'body'],
  'conversation events': ['runId', 'seq', 'kind', 'data'],
  'device list': [
    'publicId',
    'deviceId',
    'displayName',
    'liveness.status',
    'maxConcurrent',
    'isWorkspaceDefault',
    'platform',
  ],
  'folder list': ['shortId', 'displayName', 'config.rootPath', 'config.deviceId', 'status', 'repoId'],
  'automation list': ['id', 'name', 'status', 'trigger.type', 'agentId', 'lastRun.status', 'lastRun.startedAt'],
  'automation skips': ['createdAt', 'reason', 'message'],
  'company list': ['id', 'slug', 'name', 'role', 'companyName', 'status'],
  'approval list': ['id', 'status', 'trigger', 'prompt', 'requestedBy.id', 'assignedTo.id', 'createdAt'],
  'question list': ['id', 'status', 'answerMode', 'prompt', 'askedBy.id', 'createdAt'],
  'secret list': ['id', 'name', 'provider', 'envVarName', 'createdBy.id', 'createdAt'],
  'task list': ['key', 'title', 'status', 'priority', 'assignee.id', 'updatedAt'],
  'task history': ['createdAt', 'source', 'kind', 'actor.type', 'data'],
  'task activity': ['createdAt', 'kind', 'actor.type', 'data'],
  'repo list': ['id', 'name', 'gitRemote', 'defaultBranch'],
  'file list': ['id', 'name', 'contentType', 'sizeBytes', 'description', 'createdAt'],
  'file history': ['id', 'version', 'sizeBytes', 'sha256', 'author.name', 'createdAt'],
  'file relations list': ['id', 'entityType', 'entityId', 'role', 'createdAt'],
  'wiki list': ['id', 'slug', 'title', 'isPublished', 'tokenCount', 'updatedAt'],
  'wiki backlinks': ['id', 'slug', 'title', 'updatedAt'],
  'wiki sources': ['ord', 'url', 'text', 'page.slug'],
  'wiki history': ['id', 'title', 'author.name', 'isPublished', 'createdAt'],
  'learning list': ['id', 'status', 'topic', 'createdByAgentId', 'createdAt'],
  'learning accept': ['learningId', 'ok', 'status', 'code', 'message'],
  'learning reject': ['learningId', 'ok', 'status', 'code', 'message'],
  'skill list': ['id', 'slug', 'name', 'version', 'sourceType', 'enabledByDefault', 'fileCount', 'installedAt'],
  'skill agent-overrides': ['skillId', 'slug', 'enabled', 'workspaceEnabled', 'effectiveEnabled'],
  'member list': ['userId', 'name', 'email', 'role'],
}
