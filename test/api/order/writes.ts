import type { TestServer } from '../../kit/server.ts'
import { ask, claimOffered, endRun, takeWake, type Asked, type Scene } from './scene.ts'

/** One write about the things of a scene; returns what its caller is told. */
export type Write = (server: TestServer, scene: Scene) => Promise<unknown>

type Of = (scene: Scene) => Omit<Asked, 'token'> & { token?: string }

const by =
  (of: Of): Write =>
  async (server, scene) => {
    const { status, body } = await ask(server, { token: scene.owner.token, ...of(scene) })
    return { status, body: body as unknown }
  }

const post = (path: (ids: Scene['ids']) => string, body?: (ids: Scene['ids']) => unknown): Write =>
  by(({ ids }) => ({ path: path(ids), ...(body && { body: body(ids) }) }))
const patch = (path: (ids: Scene['ids']) => string, body: (ids: Scene['ids']) => unknown): Write =>
  by(({ ids }) => ({ path: path(ids), method: 'PATCH', body: body(ids) }))
const remove = (path: (ids: Scene['ids']) => string): Write => by(({ ids }) => ({ path: path(ids), method: 'DELETE' }))
const move = (status: string): Write =>
  post(
    ({ task }) => `/tasks/${task}/transition`,
    () => ({ status, reason: 'Because.' }),
  )
const assign = (to: (ids: Scene['ids']) => string | null): Write =>
  post(
    ({ task }) => `/tasks/${task}/assign`,
    (ids) => ({ assignee: to(ids) }),
  )
const workspace = (action: string): Write =>
  by(({ owner }) => ({ path: `/workspaces/${owner.workspaceId}/${action}`, body: {} }))

export const writes: Readonly<Record<string, Write>> = {
  'delete one': remove(({ one }) => `/agents/${one}`),
  'delete two': remove(({ two }) => `/agents/${two}`),
  'rename one': patch(
    ({ one }) => `/agents/${one}`,
    () => ({ name: 'Same' }),
  ),
  'rename two': patch(
    ({ two }) => `/agents/${two}`,
    () => ({ name: 'Same' }),
  ),
  'describe one': patch(
    ({ one }) => `/agents/${one}`,
    () => ({ description: 'Described.' }),
  ),
  'create an agent': post(
    () => '/agents',
    () => ({ name: 'Same', harness: 'command', command: 'true' }),
  ),
  'copy one': post(
    ({ one }) => `/agents/${one}/clones`,
    () => ({ name: 'Same' }),
  ),
  'give one to the member': by(({ ids, member }) => ({
    path: `/agents/${ids.one}/transfer-owner`,
    body: { newOwnerId: member.userId },
  })),
  'one reports to two': patch(
    ({ one }) => `/agents/${one}`,
    ({ two }) => ({ reportingTo: two }),
  ),
  'two reports to one': patch(
    ({ two }) => `/agents/${two}`,
    ({ one }) => ({ reportingTo: one }),
  ),
  'wake one': post(
    ({ one }) => `/agents/${one}/runs`,
    () => ({}),
  ),
  'mention one': post(
    ({ one }) => `/agents/${one}/runs`,
    () => ({ source: 'mention', prompt: 'Look.' }),
  ),
  'mention one again': post(
    ({ one }) => `/agents/${one}/runs`,
    () => ({ source: 'mention', prompt: 'Look.' }),
  ),
  'wake two for the task': post(
    ({ two }) => `/agents/${two}/runs`,
    ({ task }) => ({ taskId: task }),
  ),
  'take the wake': (server, { ids }) => takeWake(server, ids.wake),
  'assign to one': assign(({ one }) => one),
  'assign to two': assign(({ two }) => two),
  'assign to nobody': assign(() => null),
  'take the other from one': post(
    ({ other }) => `/tasks/${other}/assign`,
    ({ two }) => ({ assignee: two }),
  ),
  'finish the other': post(
    ({ other }) => `/tasks/${other}/transition`,
    () => ({ status: 'done' }),
  ),
  begin: move('in_progress'),
  finish: move('done'),
  'call off': move('cancelled'),
  'archive the task': post(({ task }) => `/tasks/${task}/archive`),
  'change the task': post(
    ({ task }) => `/tasks/${task}`,
    () => ({ priority: 'high' }),
  ),
  'retitle the task': post(
    ({ task }) => `/tasks/${task}`,
    () => ({ title: 'Another title' }),
  ),
  'put the task into the project': post(
    ({ task }) => `/tasks/${task}`,
    ({ project }) => ({ projectId: project }),
  ),
  'put the task under the other': post(
    ({ task }) => `/tasks/${task}/move`,
    ({ other }) => ({ parentTaskId: other }),
  ),
  'put the other under the task': post(
    ({ other }) => `/tasks/${other}/move`,
    ({ task }) => ({ parentTaskId: task }),
  ),
  'the task waits for the other': post(
    ({ task }) => `/tasks/${task}/dependencies`,
    ({ other }) => ({ dependsOnTaskId: other }),
  ),
  'the other waits for the task': post(
    ({ other }) => `/tasks/${other}/dependencies`,
    ({ task }) => ({ dependsOnTaskId: task }),
  ),
  'comment for one': post(
    ({ task }) => `/tasks/${task}/comments`,
    ({ one }) => ({ content: `@${one} see this.` }),
  ),
  'create a task': post(
    () => '/tasks',
    ({ two, task }) => ({ title: 'Made', assignee: two, parentTaskId: task }),
  ),
  'cancel the queued run': post(
    ({ queued }) => `/runs/${queued}/cancel`,
    () => ({}),
  ),
  'cancel the running run': post(
    ({ running }) => `/runs/${running}/cancel`,
    () => ({}),
  ),
  'retry the queued run': post(
    ({ queued }) => `/runs/${queued}/retry`,
    () => ({}),
  ),
  'the running run ends': (server, scene) => endRun(server, scene),
  'the offered run is claimed': (server, scene) => claimOffered(server, scene),
  'cancel the offered run': post(
    ({ offered }) => `/runs/${offered}/cancel`,
    () => ({}),
  ),
  'delete the project': remove(({ project }) => `/projects/${project}`),
  'one leads the project': patch(
    ({ project }) => `/projects/${project}/config`,
    ({ one }) => ({ leadAgentId: one }),
  ),
  'complete the project': patch(
    ({ project }) => `/projects/${project}/config`,
    () => ({ status: 'completed' }),
  ),
  'pause the automation': post(({ automation }) => `/automations/${automation}/pause`),
  'run the automation': post(({ automation }) => `/automations/${automation}/run`),
  'archive the automation': post(({ automation }) => `/automations/${automation}/archive`),
  'the automation wakes two': post(
    ({ automation }) => `/automations/${automation}`,
    ({ two }) => ({ agentId: two }),
  ),
  'archive the channel': post(({ channel }) => `/conversations/${channel}/archive`),
  'delete the channel': post(({ channel }) => `/conversations/${channel}/delete`),
  'say to one': post(
    ({ channel }) => `/conversations/${channel}/messages`,
    ({ one }) => ({ body: `@${one} hello` }),
  ),
  'talk with one': by(({ ids }) => ({
    path: `/conversations/${ids.channel}/send`,
    body: { body: 'Answer.', agentId: ids.one },
  })),
  'add two to the channel': post(
    ({ channel }) => `/conversations/${channel}/participants`,
    ({ two }) => ({ id: two }),
  ),
  'remove one from the channel': post(({ channel, one }) => `/conversations/${channel}/participants/${one}/remove`),
  approve: post(
    ({ approval }) => `/approvals/${approval}/approve`,
    () => ({}),
  ),
  reject: post(
    ({ approval }) => `/approvals/${approval}/reject`,
    () => ({ reason: 'No.' }),
  ),
  'pause all agents': workspace('pause-agents'),
  'resume all agents': workspace('resume-agents'),
  'the member leaves': by(({ owner, member }) => ({
    path: `/workspaces/${owner.workspaceId}/leave`,
    body: {},
    token: member.token,
  })),
  'the member makes an agent': by(({ member }) => ({
    path: '/agents',
    body: { name: 'Of the member', harness: 'command', command: 'true' },
    token: member.token,
  })),
  'cap the budget': by(({ owner }) => ({
    path: `/workspaces/${owner.workspaceId}`,
    method: 'PATCH',
    body: { monthlyBudgetCents: 100 },
  })),
}
