import type { Person, TestServer } from '../../kit/server.ts'
import { unknownIds } from './every-route.ts'

/** One of each kind of thing in the stranger's workspace; their ids by the parameter that names them, as in `unknownIds`. */
export async function strangersThings(server: TestServer, stranger: Person): Promise<Record<string, string>> {
  const agent = await server.createAgent({}, stranger.token)
  const run = await server.ok(`/agents/${agent.id}/runs`, { token: stranger.token, body: {} })
  const device = await server.ok('/device/enrol', {
    base: '/api',
    token: stranger.token,
    body: { hostname: 'theirs', platform: 'linux', version: '1' },
  })
  const folder = await server.ok('/folders', {
    token: stranger.token,
    body: { displayName: 'theirs', rootPath: '/tmp', deviceId: device.publicId },
  })
  const project = await server.ok('/projects', { token: stranger.token, body: { name: 'Theirs' } })
  const automation = await server.ok('/automations', {
    token: stranger.token,
    body: { name: 'Theirs', trigger: { type: 'webhook' }, agentId: agent.id, prompt: 'x' },
  })
  const keyed = { 'idempotency-key': crypto.randomUUID() }
  const conversation = await server.ok('/conversations', {
    token: stranger.token,
    headers: keyed,
    body: { firstMessage: 'Ours.' },
  })
  const task = await server.ok('/tasks', {
    token: stranger.token,
    headers: keyed,
    body: { title: 'Theirs', checklist: ['Theirs'] },
  })
  const secret = await server.ok('/secrets', { token: stranger.token, body: { name: 'theirs', value: 'x' } })
  // Whoever asks ends its run, so each asks in one of its own.
  const asks = async (path: string) => {
    const asking = await server.ok(`/agents/${agent.id}/runs`, { token: stranger.token, body: {} })
    const token = await server.runToken(asking.runPublicId)
    const headers = { 'idempotency-key': crypto.randomUUID() }
    return server.ok(path, { token, headers, body: { prompt: 'Ours?' } })
  }
  const { approval } = await asks('/approvals')
  const { question } = await asks('/questions')
  const repo = await server.ok('/repos', { token: stranger.token, body: { gitRemote: 'github.com/their/repo' } })
  const { revision } = await server.ok(`/agents/${agent.id}/config`, {
    method: 'PUT',
    token: stranger.token,
    body: { config: { runtime: { maxTurns: 5 } } },
  })
  return {
    agentId: agent.id,
    automationId: automation.id,
    companyId: stranger.workspaceId,
    taskId: task.id,
    itemId: task.checklist[0].id,
    dependencyId: task.id,
    repoId: repo.id,
    runId: run.runPublicId,
    approvalId: approval.id,
    secretId: secret.id,
    eventId: unknownIds['eventId'] ?? '',
    id: device.deviceId,
    'conversations.id': conversation.id,
    'messages.id': conversation.lastMessageId,
    'questions.id': question.id,
    'tasks.id': task.id,
    ref: stranger.userId,
    shortId: folder.shortId,
    workspaceId: stranger.workspaceId,
    slug: 'elsewhere',
    userId: stranger.userId,
    projectId: project.id,
    token: 'another-invite',
    revisionId: revision.id,
    entryId: revision.id,
  }
}
