import fc from 'fast-check'
import { makeConversation, say } from '../../kit/talk.ts'
import { unknownIds } from './every-route.ts'
import { gateRequests } from './gate-recipes.ts'
import type { ValueSource } from './schema-values.ts'
import type { Stage } from './stage.ts'
import { makeTask } from './task-requests.ts'

/** Things that are there, by the parameter that names them; made anew now and then, since requests change and delete them. */
export type Pool = Record<(typeof poolNames)[number], string>

/** `{id}` of a resource whose ids have a form of their own stands under the first word of its path, as in `unknownIds`. */
export const poolNames = [
  'agentId',
  'approvalId',
  'automationId',
  'companyId',
  'conversations.id',
  'dependencyId',
  'deviceId',
  'entryId',
  'eventId',
  'id',
  'itemId',
  'messages.id',
  'newOwnerId',
  'projectId',
  'questions.id',
  'ref',
  'repoId',
  'revisionId',
  'runId',
  'secretId',
  'shortId',
  'slug',
  'taskId',
  'tasks.id',
  'token',
  'userId',
  'workspaceId',
] as const

/** `isWorking`: its run is the one that works, and not one that waits. */
export async function makePool(stage: Stage, isWorking = false): Promise<Pool> {
  const { agentId, revisionId } = await stage.revised()
  const { deviceId, publicId } = await stage.enrolled()
  const { data } = await stage.server.ok(`/runs/${stage.live.runId}/events`)
  return {
    agentId,
    companyId: stage.owner.workspaceId,
    revisionId,
    entryId: revisionId,
    runId: isWorking ? stage.live.runId : await stage.queuedRun(),
    eventId: data[0].id,
    id: deviceId,
    deviceId: publicId,
    shortId: await stage.folder({ deviceId: publicId }),
    projectId: await stage.project(),
    workspaceId: stage.owner.workspaceId,
    userId: stage.member.userId,
    slug: 'main',
    newOwnerId: stage.member.userId,
    ...(await work(stage, agentId)),
  }
}

/** What the agent and the people work on. */
async function work(stage: Stage, agentId: string) {
  const { server } = stage
  const automation = await server.ok('/automations', {
    body: { name: 'Fuzzed', trigger: { type: 'webhook' }, agentId, prompt: 'x' },
  })
  const blocker = await makeTask(stage)
  const task = await makeTask(stage, { checklist: ['Test it'], dependsOn: [blocker.key] })
  const conversation = await makeConversation(server, { participants: [agentId] })
  const message = await say(server, conversation.id as string, 'Hello.')
  const repo = await server.ok('/repos', { body: { gitRemote: `github.com/fuzzed/${crypto.randomUUID()}` } })
  const secret = await server.ok('/secrets', { body: { name: `fuzzed-${crypto.randomUUID()}`, value: 'x' } })
  const [approval, question] = [
    await gateRequests['approvals.get']!(stage),
    await gateRequests['questions.get']!(stage),
  ]
  return {
    automationId: automation.id as string,
    token: (automation.webhookUrl as string).split('/').at(-1) ?? '',
    taskId: task.id as string,
    'tasks.id': task.id as string,
    itemId: task.checklist[0].id as string,
    dependencyId: blocker.id as string,
    'conversations.id': conversation.id as string,
    ref: agentId,
    'messages.id': message.id as string,
    approvalId: approval.params?.['approvalId'] ?? '',
    'questions.id': question.params?.['questions.id'] ?? '',
    repoId: repo.id as string,
    secretId: secret.id as string,
  }
}

/** The key in the pool of a path's parameter. */
export function poolNameOf(path: string, name: string): string {
  const own = `${path.replace(/^\/api(?:\/v1)?\//, '').split('/')[0]}.${name}`
  return own in unknownIds ? own : name
}

/** Stands in a request for the thing of the pool that there is when it is sent. */
export const inPool = (name: string) => `<${name}>`
export const filled = <T>(value: T, pool: Readonly<Record<string, string>>): T =>
  JSON.parse(JSON.stringify(value ?? null).replaceAll(/<([\w.]+)>/g, (whole, name: string) => pool[name] ?? whole)) as T

/** Not the workspace itself: some routes would leave the rest of the test without one that works. */
const namesElsewhere = poolNames.filter((name) => !['companyId', 'slug', 'workspaceId'].includes(name))
export const known = fc.oneof(
  fc.constantFrom(...namesElsewhere.map(inPool)),
  fc.constantFrom('me', 'current', '@nobody', 'main', ...Object.values(unknownIds)),
)

const of = (name: (typeof poolNames)[number]) => fc.constant(inPool(name))
/** Bodies and queries name things under the parameters' names, or under these. */
export const named: ValueSource['named'] = {
  ...Object.fromEntries(namesElsewhere.filter((name) => /^\w+Id$/.test(name)).map((name) => [name, of(name)])),
  reportingTo: of('agentId'),
  leadAgentId: of('agentId'),
  defaultFolderId: of('shortId'),
  defaultRepoId: of('repoId'),
  rootPath: fc.constantFrom('/home/me/site', '/tmp', 'C:\\code'),
  assignee: of('agentId'),
  participantId: of('ref'),
  participants: fc.constantFrom([], [inPool('agentId')], [inPool('userId')], [{ type: 'user', id: inPool('userId') }]),
  conversationId: of('conversations.id'),
  parentTaskId: fc.oneof(of('taskId'), of('dependencyId'), fc.constant(null)),
  dependsOn: fc.constantFrom([inPool('taskId')], [inPool('dependencyId'), inPool('taskId')]),
  dependsOnTaskId: fc.oneof(of('taskId'), of('dependencyId')),
  parentMessageId: of('messages.id'),
  around: of('messages.id'),
  startingAfter: fc.oneof(of('conversations.id'), of('messages.id'), of('tasks.id'), of('approvalId')),
  harness: fc.constantFrom('claude', 'codex', 'command'),
  modelId: fc.constantFrom('claude-opus-4-5', 'gpt-5', 'no-such-model'),
}
