import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TriggerSource } from '../../../shared/api/runs.ts'
import { askers } from '../../../control-plane/trust/askers.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { made, task } from './tasks-kit.ts'
import { makeWorkflow, settled, startFlow } from './workflows-kit.ts'

/**
 * Walks all trigger sources. `he` is an admin, whose device is the workspace's default one and takes his work alone; `she` is a
 * member. Whatever she does beside whatever he does, no run that follows her words, or runs her program, reaches his device. What
 * he asks for by himself does.
 */

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

/** What the test reads of the things that it makes. */
interface Made {
  id: string
  key: string
  webhookUrl: string
}

interface Scene {
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

let scenes = 0
async function sceneOf(): Promise<Scene> {
  const { root } = server.database
  const slug = `walk-${++scenes}`
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
    he,
    she,
    device,
    his,
    hers,
    post,
    taskOf: (by, body = {}) => task(server, { ...body }, by.token),
    close: (taskId, by) => post(`/tasks/${taskId}/transition`, { status: 'done' }, by),
    async clear(agentId) {
      await quiet()
      const isOffered = () => root('runs').where({ agent_id: agentId, lease_state: 'offered' }).first('id')
      while ((await isOffered()) !== undefined) await (await device.take()).end()
      for (const run of await waitingOf(agentId, he))
        await server.ok(`/runs/${run.id}/cancel`, { body: {}, token: he.token })
    },
  }
}

/** Resolves when all wakes that were asked for became runs, and all runs that may be offered are. */
async function quiet(): Promise<void> {
  await settled(server)
  await server.plane.waker.sweep()
  await server.plane.sweeper.runAll()
  await server.plane.dispatcher.idle()
}

async function waitingOf(
  agentId: string,
  by: Person,
): Promise<{ id: string; gateReason: string; triggerSource: string }[]> {
  return (await server.ok(`/runs?agent=${agentId}&status=queued`, { token: by.token })).data
}

interface Case {
  /** What she does, and what he does. */
  title: string
  /** Returns the agent that is woken. */
  act: (scene: Scene) => Promise<string>
  /** Default: it never reaches his device. */
  isHis?: true
}

const comment = (scene: Scene, taskId: string, body: string, by: Person) =>
  scene.post(`/tasks/${taskId}/comments`, { body }, by)
const channelOf = async ({ post, he, she, his, hers }: Scene) =>
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
const handleOf = async (agentId: string, by: Person): Promise<string> =>
  (await server.ok(`/agents/${agentId}`, { token: by.token })).handle.replace(/^@/, '')
const say = async (scene: Scene, conversationId: string, body: string, by: Person) =>
  scene.post(`/conversations/${conversationId}/messages`, { body }, by)
const automationOf = (scene: Scene, by: Person, body: Record<string, unknown> = {}) =>
  scene.post(
    '/automations',
    { name: 'Hook', prompt: 'Go.', agentId: scene.his, trigger: { type: 'webhook' }, ...body },
    by,
  )
const fire = (webhookUrl: string) =>
  server.call(new URL(webhookUrl).pathname, { base: '', token: null, body: { once: crypto.randomUUID() } })
/** Writes the AGENT.md of the agent, as every person may who sees it. */
const writeAgentMd = (agentId: string, identityMd: string, { token }: Person) =>
  server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { identityMd }, token })
/** Schedules the task, and lets the time come. */
async function begin(scene: Scene, by: Person, more: Record<string, unknown>): Promise<Made> {
  const startAt = new Date(server.world.now() + 60_000).toISOString()
  const later = await scene.taskOf(by, { startAt, ...more })
  return later
}
const comes = async () => {
  server.world.advance(61_000)
  await quiet()
}
/** A run of the agent that stopped to ask a question: of his on his device, of hers on one that is gone since. */
async function asks(scene: Scene, agentId: string, by: Person): Promise<string> {
  const theirs = by === scene.he ? scene.device : await FakeDevice.connect(server, { token: by.token })
  await server.startRun(agentId, { prompt: 'words' }, by.token)
  const work = await theirs.take()
  const asked = await made(server, '/questions', { prompt: 'Which one?' }, work.token)
  await work.end('question_asked')
  if (theirs !== scene.device)
    await server.ok(`/devices/${theirs.identity.deviceId}`, { method: 'DELETE', token: by.token })
  return asked.question.id as string
}

const cases: Record<Exclude<TriggerSource, 'heartbeat' | 'unknown'>, Case[]> = {
  assignment: [
    {
      title: 'he gives his agent his task',
      isHis: true,
      act: async ({ taskOf, he, his }) => (await taskOf(he, { assignee: his }), his),
    },
    {
      title: 'she gives his agent her task',
      act: async ({ taskOf, she, his }) => (await taskOf(she, { assignee: his }), his),
    },
    {
      title: 'she gives his agent his task',
      act: async ({ taskOf, post, he, she, his }) => {
        const { id } = await taskOf(he)
        await post(`/tasks/${id}/assign`, { assignee: his }, she)
        return his
      },
    },
    {
      title: 'he gives his agent the task that she wrote',
      act: async ({ taskOf, post, he, she, his }) => {
        const { id } = await taskOf(she, { description: 'her words' })
        await post(`/tasks/${id}/assign`, { assignee: his }, he)
        return his
      },
    },
    {
      title: 'she changes the description of his task before he gives it',
      act: async ({ taskOf, post, he, she, his }) => {
        const { id } = await taskOf(he, { description: 'his words' })
        await server.ok(`/tasks/${id}`, { body: { description: 'her words' }, token: she.token })
        await post(`/tasks/${id}/assign`, { assignee: his }, he)
        return his
      },
    },
    {
      title: 'he writes her task anew and gives it',
      isHis: true,
      act: async ({ taskOf, post, he, she, his }) => {
        const { id } = await taskOf(she, { description: 'her words' })
        const body = { title: `mine ${id}`, description: 'his words' }
        await server.ok(`/tasks/${id}`, { body, token: he.token })
        await post(`/tasks/${id}/assign`, { assignee: his }, he)
        return his
      },
    },
    {
      title: 'he gives her agent his task',
      act: async ({ taskOf, he, hers }) => (await taskOf(he, { assignee: hers }), hers),
    },
    {
      title: 'she changes the title of his task that waits for its start',
      act: async (scene) => {
        const { id } = await begin(scene, scene.he, { assignee: scene.his })
        await server.ok(`/tasks/${id}`, { body: { title: `hers ${id}` }, token: scene.she.token })
        await comes()
        return scene.his
      },
    },
    {
      title: 'the start of his task comes',
      isHis: true,
      act: async (scene) => {
        await begin(scene, scene.he, { assignee: scene.his })
        await comes()
        return scene.his
      },
    },
    {
      title: 'she has the task that she wrote and he gave begin now',
      act: async (scene) => {
        const { id } = await begin(scene, scene.she, {})
        await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
        await server.ok(`/tasks/${id}`, { body: { startAt: null }, token: scene.he.token })
        return scene.his
      },
    },
    {
      title: 'she opens his finished task again, with a reason',
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.he, { assignee: scene.his })
        await scene.clear(scene.his)
        await scene.close(id, scene.he)
        await scene.post(`/tasks/${id}/transition`, { status: 'open', reason: 'her words' }, scene.she)
        return scene.his
      },
    },
  ],
  mention: [
    {
      title: 'he mentions his agent',
      isHis: true,
      act: async (scene) => {
        await say(scene, await channelOf(scene), `@${await handleOf(scene.his, scene.he)} go`, scene.he)
        return scene.his
      },
    },
    {
      title: 'she mentions his agent',
      act: async (scene) => {
        await say(scene, await channelOf(scene), `@${await handleOf(scene.his, scene.he)} go`, scene.she)
        return scene.his
      },
    },
    {
      title: 'he mentions her agent',
      act: async (scene) => {
        await say(scene, await channelOf(scene), `@${await handleOf(scene.hers, scene.she)} go`, scene.he)
        return scene.hers
      },
    },
    {
      title: 'he mentions his agent where she did so in vain',
      isHis: true,
      act: async (scene) => {
        const channel = await channelOf(scene)
        const text = `@${await handleOf(scene.his, scene.he)} go`
        await say(scene, channel, text, scene.she)
        await quiet()
        await say(scene, channel, text, scene.he)
        return scene.his
      },
    },
    {
      title: 'both mention his agent while it works',
      act: async (scene) => {
        const channel = await channelOf(scene)
        const text = `@${await handleOf(scene.his, scene.he)} go`
        await say(scene, channel, text, scene.he)
        const work = await scene.device.take()
        await say(scene, channel, text, scene.he)
        await say(scene, channel, text, scene.she)
        await work.end()
        return scene.his
      },
    },
    {
      title: 'he mentions his agent in a comment on her task, which she gave it',
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.she, { assignee: scene.his })
        await scene.clear(scene.his)
        await comment(scene, id, `@${await handleOf(scene.his, scene.he)} go`, scene.he)
        return scene.his
      },
    },
  ],
  channel_message: [
    {
      title: 'she writes to his agent',
      act: async (scene) => {
        const dm = await scene.post(
          '/conversations',
          { kind: 'dm', participants: [{ type: 'agent', id: scene.his }] },
          scene.she,
        )
        await say(scene, dm.id, 'her words', scene.she)
        return scene.his
      },
    },
    {
      title: 'he writes to his agent',
      isHis: true,
      act: async (scene) => {
        const dm = await scene.post(
          '/conversations',
          { kind: 'dm', participants: [{ type: 'agent', id: scene.his }] },
          scene.he,
        )
        await say(scene, dm.id, 'his words', scene.he)
        return scene.his
      },
    },
    {
      title: 'he comments on the task that she gave her agent',
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.she, { assignee: scene.hers })
        await scene.clear(scene.hers)
        await comment(scene, id, 'Fine.', scene.he)
        return scene.hers
      },
    },
    {
      title: 'he comments on the task that she wrote and his agent has',
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.she, { description: 'her words' })
        await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
        await scene.clear(scene.his)
        await comment(scene, id, 'Fine.', scene.he)
        return scene.his
      },
    },
  ],
  fan_in: [
    {
      title: 'he closes his task, which she moved below hers',
      act: async (scene) => {
        const parent = await scene.taskOf(scene.she, { assignee: scene.hers })
        await scene.clear(scene.hers)
        const { id } = await scene.taskOf(scene.he)
        await scene.post(`/tasks/${id}/move`, { parentTaskId: parent.id }, scene.she)
        await scene.close(id, scene.he)
        return scene.hers
      },
    },
    {
      title: 'he closes the last part of a task that she gave his agent',
      act: async (scene) => {
        const parent = await scene.taskOf(scene.she, { assignee: scene.his })
        await scene.clear(scene.his)
        const { id } = await scene.taskOf(scene.he, { parentTaskId: parent.id })
        await scene.close(id, scene.he)
        return scene.his
      },
    },
    {
      title: 'she closes the last part of his task, which he gave his agent',
      isHis: true,
      act: async (scene) => {
        const parent = await scene.taskOf(scene.he, { assignee: scene.his })
        await scene.clear(scene.his)
        const { id } = await scene.taskOf(scene.she, { parentTaskId: parent.id })
        await scene.close(id, scene.she)
        return scene.his
      },
    },
  ],
  dependency_resolved: [
    {
      title: 'he closes his task, on which that of her agent depends',
      act: async (scene) => {
        const blocker = await scene.taskOf(scene.he)
        await scene.taskOf(scene.she, { assignee: scene.hers, dependsOn: [blocker.id] })
        await scene.close(blocker.id, scene.he)
        return scene.hers
      },
    },
    {
      title: 'he closes his task, on which one depends that she wrote and gave his agent',
      act: async (scene) => {
        const blocker = await scene.taskOf(scene.he)
        await scene.taskOf(scene.she, { assignee: scene.his, dependsOn: [blocker.id], description: 'her words' })
        await scene.close(blocker.id, scene.he)
        return scene.his
      },
    },
    {
      title: 'he takes off what her task waits for',
      act: async (scene) => {
        const blocker = await scene.taskOf(scene.he)
        const { id } = await scene.taskOf(scene.she, { assignee: scene.hers, dependsOn: [blocker.id] })
        await scene.post(`/tasks/${id}/dependencies/${blocker.id}/remove`, {}, scene.he)
        return scene.hers
      },
    },
    {
      title: 'she closes her task, on which his depends',
      isHis: true,
      act: async (scene) => {
        const blocker = await scene.taskOf(scene.she)
        await scene.taskOf(scene.he, { assignee: scene.his, dependsOn: [blocker.id] })
        await scene.close(blocker.id, scene.she)
        return scene.his
      },
    },
  ],
  task_watched: [
    {
      title: 'he closes her task, which she has his agent watch',
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.she, { description: 'her words' })
        await scene.post(`/tasks/${id}/watchers`, { type: 'agent', id: scene.his }, scene.she)
        await scene.close(id, scene.he)
        return scene.his
      },
    },
    {
      title: 'she closes her task, which he has his agent watch',
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.she, { description: 'her words' })
        await scene.post(`/tasks/${id}/watchers`, { type: 'agent', id: scene.his }, scene.he)
        await scene.close(id, scene.she)
        return scene.his
      },
    },
    {
      title: 'she comments on his task, which he has his agent watch',
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.he)
        await scene.post(`/tasks/${id}/watchers`, { type: 'agent', id: scene.his }, scene.he)
        await comment(scene, id, 'her words', scene.she)
        return scene.his
      },
    },
    {
      title: 'she closes his task, which he has his agent watch',
      isHis: true,
      act: async (scene) => {
        const { id } = await scene.taskOf(scene.he)
        await scene.post(`/tasks/${id}/watchers`, { type: 'agent', id: scene.his }, scene.he)
        await scene.close(id, scene.she)
        return scene.his
      },
    },
  ],
  approval_resolved: [
    {
      title: 'he answers what her agent asked in a run of hers',
      act: async (scene) => {
        const question = await asks(scene, scene.hers, scene.she)
        await scene.post(`/questions/${question}/answer`, { answer: { text: 'yes' } }, scene.he)
        return scene.hers
      },
    },
    {
      title: 'she answers what his agent asked in a run of his',
      act: async (scene) => {
        const question = await asks(scene, scene.his, scene.he)
        await scene.post(`/questions/${question}/answer`, { answer: { text: 'her words' } }, scene.she)
        return scene.his
      },
    },
    {
      title: 'he answers what his agent asked in a run of his',
      isHis: true,
      act: async (scene) => {
        const question = await asks(scene, scene.his, scene.he)
        await scene.post(`/questions/${question}/answer`, { answer: { text: 'yes' } }, scene.he)
        return scene.his
      },
    },
  ],
  webhook: [
    {
      title: 'the hook of his automation, whose prompt she changed',
      act: async (scene) => {
        const { id, webhookUrl } = await automationOf(scene, scene.he)
        await server.ok(`/automations/${id}`, { body: { prompt: 'her words' }, token: scene.she.token })
        await fire(webhookUrl)
        return scene.his
      },
    },
    {
      title: 'the hook of his automation',
      isHis: true,
      act: async (scene) => {
        await fire((await automationOf(scene, scene.he)).webhookUrl)
        return scene.his
      },
    },
  ],
  cron: [
    {
      title: 'the schedule that she set for his agent',
      act: async (scene) => {
        await automationOf(scene, scene.she, { trigger: { type: 'schedule', cron: '* * * * *', timezone: 'UTC' } })
        await comes()
        return scene.his
      },
    },
  ],
  workflow_step: [
    {
      title: 'he starts her workflow',
      act: async (scene) => {
        const name = await makeWorkflow(server, `await agent('her words')`, { token: scene.she.token })
        const { id } = await scene.taskOf(scene.he, {})
        await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
        await scene.clear(scene.his)
        await startFlow(server, name, { taskId: id }, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he starts his workflow on the task that she wrote',
      act: async (scene) => {
        const name = await makeWorkflow(server, `await agent('Go.')`, { token: scene.he.token })
        const { id } = await scene.taskOf(scene.she, { description: 'her words' })
        await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
        await scene.clear(scene.his)
        await startFlow(server, name, { taskId: id }, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'his workflow hands on what she answered',
      act: async (scene) => {
        const body = `await agent('First.')\nconst said = await ask('What?')\nawait agent(said)`
        const name = await makeWorkflow(server, body, { token: scene.he.token })
        const { id } = await scene.taskOf(scene.he, { assignee: scene.his })
        await scene.clear(scene.his)
        await startFlow(server, name, { taskId: id }, scene.he.token)
        await quiet()
        await (await scene.device.take()).end()
        await quiet()
        const [question] = (await server.ok('/questions', { token: scene.she.token })).data
        await scene.post(`/questions/${question.id}/answer`, { answer: { text: 'her words' } }, scene.she)
        return scene.his
      },
    },
    {
      title: 'he starts his workflow',
      isHis: true,
      act: async (scene) => {
        const name = await makeWorkflow(server, `await agent('Go.', { agent: '${scene.his}' })`, {
          token: scene.he.token,
        })
        await startFlow(server, name, {}, scene.he.token)
        return scene.his
      },
    },
  ],
  agent_request: [
    {
      title: 'her run wakes his agent',
      act: async (scene) => {
        const theirs = await FakeDevice.connect(server, { token: scene.she.token })
        await server.startRun(scene.hers, {}, scene.she.token)
        const work = await theirs.take()
        await server.startRun(scene.his, { prompt: 'her words' }, work.token)
        await work.end()
        await theirs.disconnect()
        return scene.his
      },
    },
    {
      title: 'his run wakes his other agent',
      isHis: true,
      act: async (scene) => {
        const settings = { method: 'PATCH', body: { maxConcurrentRuns: 2 }, token: scene.he.token }
        await server.ok(`/devices/${scene.device.identity.deviceId}`, settings)
        const other = (await server.createAgent({}, scene.he.token)).id as string
        await server.startRun(other, {}, scene.he.token)
        const work = await scene.device.take()
        await server.startRun(scene.his, {}, work.token)
        return scene.his
      },
    },
  ],
  manual: [
    {
      title: 'she starts his agent',
      act: async (scene) => (await server.startRun(scene.his, {}, scene.she.token), scene.his),
    },
    {
      title: 'he starts her agent',
      act: async (scene) => (await server.startRun(scene.hers, {}, scene.he.token), scene.hers),
    },
    {
      title: 'he starts his agent on the task that she wrote',
      act: async (scene) => {
        const { key } = await scene.taskOf(scene.she, { description: 'her words' })
        await server.startRun(scene.his, { taskId: key }, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he starts his agent',
      isHis: true,
      act: async (scene) => (await server.startRun(scene.his, {}, scene.he.token), scene.his),
    },
    {
      title: 'he starts his agent, whose AGENT.md she changed',
      act: async (scene) => {
        await writeAgentMd(scene.his, 'her words', scene.she)
        await server.startRun(scene.his, {}, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he starts his agent, whose AGENT.md she changed and he wrote anew',
      isHis: true,
      act: async (scene) => {
        await writeAgentMd(scene.his, 'her words', scene.she)
        await writeAgentMd(scene.his, 'his words', scene.he)
        await server.startRun(scene.his, {}, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he writes AGENT.md anew while a run waits that follows hers',
      act: async (scene) => {
        await writeAgentMd(scene.his, 'her words', scene.she)
        await server.startRun(scene.his, {}, scene.he.token)
        await writeAgentMd(scene.his, 'his words', scene.he)
        return scene.his
      },
    },
    {
      title: 'he does her cancelled run of his agent again',
      act: async (scene) => {
        const runId = await server.startRun(scene.his, { prompt: 'her words' }, scene.she.token)
        await server.ok(`/runs/${runId}/cancel`, { body: {}, token: scene.he.token })
        await scene.post(`/runs/${runId}/retry`, {}, scene.he)
        return scene.his
      },
    },
    {
      title: 'he fires her automation by hand',
      act: async (scene) => {
        const { id } = await automationOf(scene, scene.she, { prompt: 'her words' })
        await scene.post(`/automations/${id}/run`, {}, scene.he)
        return scene.his
      },
    },
  ],
}

test('each trigger source of the documents has its cases', () => {
  const used = Object.entries(askers).filter(([, names]) => names.length > 0)
  expect(Object.keys(cases).toSorted()).toEqual(used.map(([source]) => source).toSorted())
})

describe.each(Object.entries(cases))('%s', (source, ofSource) => {
  test.each(ofSource)('$title', async ({ act, isHis = false }) => {
    const scene = await sceneOf()
    const agentId = await act(scene)
    await quiet()
    const { root } = server.database
    if (isHis) {
      const work = await scene.device.take()
      const { triggerSource, agent } = await server.ok(`/runs/${work.runId}`, { token: scene.he.token })
      expect([triggerSource, agent.id]).toEqual([source, agentId])
      await work.end()
    } else {
      const waiting = await waitingOf(agentId, scene.he)
      expect(waiting.map(({ triggerSource, gateReason }) => [triggerSource, gateReason])).toEqual([
        [source, 'governance_refused'],
      ])
      const [last] = waiting
      expect(await root('runs').where({ id: last!.id }).first('device', 'fence')).toEqual({ device: null, fence: 0 })
    }
    await scene.device.disconnect()
  })
})

test('a run that no device may take holds up no other one of its task', async () => {
  const scene = await sceneOf()
  const { id, key } = await scene.taskOf(scene.he)
  const held = await server.startRun(scene.his, { taskId: key }, scene.she.token)
  const also = await server.startRun(scene.hers, { taskId: key }, scene.she.token)
  await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
  await quiet()
  const work = await scene.device.take()
  expect([held, also]).not.toContain(work.runId)
  // Nor one that waits already when it is looked at again.
  const next = await server.startRun(scene.his, { taskId: key }, scene.he.token)
  const gateOf = async (runId: string) => (await server.ok(`/runs/${runId}`, { token: scene.he.token })).gateReason
  expect(await gateOf(next)).toBe('task_locked')
  expect(await gateOf(held)).toBe('task_locked')
  await work.end()
  await quiet()
  const second = await scene.device.take()
  expect(second.runId).toBe(next)
  await second.end()
  expect([await gateOf(held), await gateOf(also)]).toEqual(['governance_refused', 'governance_refused'])
  await scene.device.disconnect()
})

describe('the default device', () => {
  const makeDefault = (device: FakeDevice, by: Person) =>
    server.call(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { isWorkspaceDefault: true },
      token: by.token,
    })

  test('is made and replaced by admins alone', async () => {
    const { she, device, he } = await sceneOf()
    const theirs = await FakeDevice.connect(server, { token: she.token })
    expect(outcomeOf(await makeDefault(theirs, she))).toBe('403 http_exception')
    expect(outcomeOf(await makeDefault(theirs, he))).toBe('403 remote_access_forbidden')
    expect((await server.ok('/devices', { token: he.token })).devices).toMatchObject([{ isWorkspaceDefault: true }])
    // Whatever else the call changes is not changed either.
    const both = { isWorkspaceDefault: true, displayName: 'Changed' }
    const { deviceId } = theirs.identity
    await server.call(`/devices/${deviceId}`, { method: 'PATCH', body: both, token: she.token })
    const [kept] = (await server.ok('/devices', { token: she.token })).devices
    expect(kept).toMatchObject({ isWorkspaceDefault: false, displayName: theirs.identity.displayName })
    await theirs.disconnect()
    await device.disconnect()
  })

  test('is none any more once its owner is no admin, also where that was stored by an older release', async () => {
    const { she, device, he } = await sceneOf()
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { runsBy: 'members' },
      token: he.token,
    })
    const agent = await server.createAgent({}, she.token)
    await server.startRun(agent.id, {}, she.token)
    await (await device.take()).end()
    const { root } = server.database
    await root('members').where({ workspace_id: he.workspaceId, user_id: he.uuid }).update({ role: 'member' })
    const waiting = await server.startRun(agent.id, {}, she.token)
    expect((await server.ok(`/runs/${waiting}`, { token: she.token })).gateReason).toBe('no_device')
    await device.disconnect()
  })

  test('comes behind a device of the owner for a private agent, whose work no other member gets', async () => {
    const { she, device, he, ...scene } = await sceneOf()
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { runsBy: 'members' },
      token: he.token,
    })
    const theirs = await FakeDevice.connect(server, { token: she.token })
    const agent = await server.createAgent({ visibility: 'private' }, she.token)
    await server.startRun(agent.id, {}, she.token)
    await (await theirs.take()).end()
    await theirs.disconnect()
    // Its owner is an admin, so it may take the work.
    await server.startRun(agent.id, {}, she.token)
    await (await device.take()).end()
    // A folder on the device of a member who is neither.
    const third = await server.addPerson('member', `walk-${scenes}`)
    const foreign = await FakeDevice.connect(server, { token: third.token })
    const folder = await server.ok('/folders', {
      body: { deviceId: foreign.identity.deviceId, displayName: 'f', rootPath: '/tmp' },
      token: third.token,
    })
    const open = await server.createAgent({}, third.token)
    const { root } = server.database
    for (const id of [open.id, agent.id])
      await root('agents').where({ id }).update({ default_folder_id: folder.shortId })
    await server.startRun(open.id, {}, she.token)
    await (await foreign.take()).end()
    const gateOf = async (runId: string) => (await server.ok(`/runs/${runId}`, { token: she.token })).gateReason
    expect(await gateOf(await server.startRun(agent.id, {}, she.token))).toBe('governance_refused')
    // Secrets, too: his agent works there with none.
    await root('agents').where({ id: scene.his }).update({ default_folder_id: folder.shortId })
    await server.startRun(scene.his, {}, he.token)
    await (await foreign.take()).end()
    await root('secret_grants').insert({
      secret_id: await secretOf(he),
      agent_id: scene.his,
      workspace_id: he.workspaceId,
      granted_by: he.userId,
      created_at: server.world.now(),
    })
    const given = await server.startRun(scene.his, {}, he.token)
    expect((await server.ok(`/runs/${given}`, { token: he.token })).gateReason).toBe('governance_refused')
    await foreign.disconnect()
    await device.disconnect()
  })

  async function secretOf({ workspaceId, userId }: Person): Promise<string> {
    const id = server.world.id('sec_')
    await server.database.root('secrets').insert({
      id,
      workspace_id: workspaceId,
      name: id,
      env_var_name: 'A_TOKEN',
      sealed: Buffer.from('x'),
      created_by: userId,
      created_at: server.world.now(),
    })
    return id
  }
})
