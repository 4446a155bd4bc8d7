import { FakeDevice } from '../../kit/fake-device.ts'
import type { Person, TestServer } from '../../kit/server.ts'
import { made, task } from './tasks-kit.ts'
import { settled } from './workflows-kit.ts'

// People of one workspace: `he` is an admin, whose device is the default one and takes his work alone; `she` is a member.

/** What the tests read of the things that it makes. */
export interface Made {
  id: string
  key: string
  webhookUrl: string
}

export interface Scene {
  server: TestServer
  /** Slug of the workspace. */
  slug: string
  he: Person
  she: Person
  device: FakeDevice
  /** His agent and hers. */
  his: string
  hers: string
  post: (path: string, body: unknown, by: Person) => Promise<Made>
  /** A task of this person. */
  taskOf: (by: Person, body?: Record<string, unknown>) => Promise<Made>
  close: (taskId: string, by: Person) => Promise<unknown>
  /** Ends the runs that the agent has, so that the next one is that of the case. */
  clear: (agentId: string) => Promise<void>
}

/** In a workspace of its own. */
export async function sceneOf(server: TestServer): Promise<Scene> {
  const { root } = server.database
  const slug = `walk-${server.world.uuid()}`
  await server.addPerson('owner', slug)
  const [he, she] = [await server.addPerson('admin', slug), await server.addPerson('member', slug)]
  const device = await FakeDevice.connect(server, { token: he.token })
  await server.ok(`/devices/${device.identity.deviceId}`, {
    method: 'PATCH',
    body: { isWorkspaceDefault: true, runsBy: 'owner' },
    token: he.token,
  })
  const his = (await server.createAgent({}, he.token)).id
  const hers = (await server.createAgent({ harness: 'command', command: 'her program' }, she.token)).id
  const post = (path: string, body: unknown, by: Person) => made(server, path, body, by.token)
  return {
    server,
    slug,
    he,
    she,
    device,
    his,
    hers,
    post,
    taskOf: (by, body = {}) => task(server, { ...body }, by.token),
    close: (taskId, by) => post(`/tasks/${taskId}/transition`, { status: 'done' }, by),
    async clear(agentId) {
      await quiet(server)
      const isOffered = () => root('runs').where({ agent_id: agentId, lease_state: 'offered' }).first('id')
      while ((await isOffered()) !== undefined) await (await device.take()).end()
      for (const run of await waitingOf(server, { agentId, by: he }))
        await server.ok(`/runs/${run.id}/cancel`, { body: {}, token: he.token })
    },
  }
}

/** Resolves when all wakes that were asked for became runs, and all runs that may be offered are. */
export async function quiet(server: TestServer): Promise<void> {
  await settled(server)
  await server.plane.waker.sweep()
  await server.plane.sweeper.runAll()
  await server.plane.dispatcher.idle()
}

export async function waitingOf(
  server: TestServer,
  { agentId, by }: { agentId: string; by: Person },
): Promise<{ id: string; gateReason: string; triggerSource: string }[]> {
  return (await server.ok(`/runs?agent=${agentId}&status=queued`, { token: by.token })).data
}

export interface Case {
  /** What she does, and what he does. */
  title: string
  /** Returns the agent that is woken. */
  act: (scene: Scene) => Promise<string>
  /** Default: it never reaches his device. */
  isHis?: true
}

export const comment = (scene: Scene, taskId: string, body: string, by: Person) =>
  scene.post(`/tasks/${taskId}/comments`, { body }, by)
export const channelOf = async ({ post, he, she, his, hers }: Scene) =>
  (
    await post(
      '/conversations',
      {
        kind: 'channel',
        title: `c-${crypto.randomUUID()}`,
        participants: [
          { type: 'user', id: she.userId },
          { type: 'agent', id: his },
          { type: 'agent', id: hers },
        ],
      },
      he,
    )
  ).id
export const handleOf = async ({ server }: Scene, agentId: string, by: Person): Promise<string> =>
  (await server.ok(`/agents/${agentId}`, { token: by.token })).handle.replace(/^@/, '')
export const say = async (scene: Scene, conversationId: string, body: string, by: Person) =>
  scene.post(`/conversations/${conversationId}/messages`, { body }, by)
export const automationOf = (scene: Scene, by: Person, body: Record<string, unknown> = {}) =>
  scene.post(
    '/automations',
    { name: 'Hook', prompt: 'Go.', agentId: scene.his, trigger: { type: 'webhook' }, ...body },
    by,
  )
export const fire = ({ server }: Scene, webhookUrl: string) =>
  server.call(new URL(webhookUrl).pathname, { base: '', token: null, body: { once: crypto.randomUUID() } })
/** Writes the AGENT.md of the agent, as every person may who sees it. */
export const writeAgentMd = ({ server, his }: Scene, identityMd: string, { token }: Person) =>
  server.ok(`/agents/${his}`, { method: 'PATCH', body: { identityMd }, token })
/** A task that begins in a minute. */
export const later = (scene: Scene, by: Person, more: Record<string, unknown>): Promise<Made> =>
  scene.taskOf(by, { startAt: new Date(scene.server.world.now() + 60_000).toISOString(), ...more })

/** Lets that minute pass. */
export async function afterAMinute({ server }: Scene): Promise<void> {
  server.world.advance(61_000)
  await quiet(server)
}

/** A run of the agent that stopped to ask a question: of his on his device, of hers on one that is gone since. */
export async function asks(scene: Scene, agentId: string, by: Person): Promise<string> {
  const { server } = scene
  const theirs = by === scene.he ? scene.device : await FakeDevice.connect(server, { token: by.token })
  await server.startRun(agentId, { prompt: 'words' }, by.token)
  const work = await theirs.take()
  const asked = await made(server, '/questions', { prompt: 'Which one?' }, work.token)
  await work.end('question_asked')
  if (theirs !== scene.device)
    await server.ok(`/devices/${theirs.identity.deviceId}`, { method: 'DELETE', token: by.token })
  return asked.question.id as string
}
