import { FakeDevice } from '../../kit/fake-device.ts'
import {
  afterAMinute,
  asks,
  automationOf,
  channelOf,
  comment,
  fire,
  handleOf,
  quiet,
  say,
  writeAgentMd,
  type Case,
} from './trust-scene.ts'
import { makeWorkflow, startFlow } from './workflows-kit.ts'

/** What people do elsewhere, by the trigger source of the wake that follows. */
export const otherCases = {
  mention: [
    {
      title: 'he mentions his agent',
      isHis: true,
      act: async (scene) => {
        await say(scene, await channelOf(scene), `@${await handleOf(scene, scene.his, scene.he)} go`, scene.he)
        return scene.his
      },
    },
    {
      title: 'she mentions his agent',
      act: async (scene) => {
        await say(scene, await channelOf(scene), `@${await handleOf(scene, scene.his, scene.he)} go`, scene.she)
        return scene.his
      },
    },
    {
      title: 'he mentions her agent',
      act: async (scene) => {
        await say(scene, await channelOf(scene), `@${await handleOf(scene, scene.hers, scene.she)} go`, scene.he)
        return scene.hers
      },
    },
    {
      title: 'he mentions his agent where she did so in vain',
      isHis: true,
      act: async (scene) => {
        const channel = await channelOf(scene)
        const text = `@${await handleOf(scene, scene.his, scene.he)} go`
        await say(scene, channel, text, scene.she)
        await quiet(scene.server)
        await say(scene, channel, text, scene.he)
        return scene.his
      },
    },
    {
      title: 'both mention his agent while it works',
      act: async (scene) => {
        const channel = await channelOf(scene)
        const text = `@${await handleOf(scene, scene.his, scene.he)} go`
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
        await comment(scene, id, `@${await handleOf(scene, scene.his, scene.he)} go`, scene.he)
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
        await scene.server.ok(`/automations/${id}`, { body: { prompt: 'her words' }, token: scene.she.token })
        await fire(scene, webhookUrl)
        return scene.his
      },
    },
    {
      title: 'the hook of his automation',
      isHis: true,
      act: async (scene) => {
        await fire(scene, (await automationOf(scene, scene.he)).webhookUrl)
        return scene.his
      },
    },
  ],
  cron: [
    {
      title: 'the schedule that she set for his agent',
      act: async (scene) => {
        await automationOf(scene, scene.she, { trigger: { type: 'schedule', cron: '* * * * *', timezone: 'UTC' } })
        await afterAMinute(scene)
        return scene.his
      },
    },
  ],
  workflow_step: [
    {
      title: 'he starts her workflow',
      act: async (scene) => {
        const name = await makeWorkflow(scene.server, `await agent('her words')`, { token: scene.she.token })
        const { id } = await scene.taskOf(scene.he, {})
        await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
        await scene.clear(scene.his)
        await startFlow(scene.server, name, { taskId: id }, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he starts his workflow on the task that she wrote',
      act: async (scene) => {
        const name = await makeWorkflow(scene.server, `await agent('Go.')`, { token: scene.he.token })
        const { id } = await scene.taskOf(scene.she, { description: 'her words' })
        await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
        await scene.clear(scene.his)
        await startFlow(scene.server, name, { taskId: id }, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'his workflow hands on what she answered',
      act: async (scene) => {
        const body = `await agent('First.')\nconst said = await ask('What?')\nawait agent(said)`
        const name = await makeWorkflow(scene.server, body, { token: scene.he.token })
        const { id } = await scene.taskOf(scene.he, { assignee: scene.his })
        await scene.clear(scene.his)
        await startFlow(scene.server, name, { taskId: id }, scene.he.token)
        await quiet(scene.server)
        await (await scene.device.take()).end()
        await quiet(scene.server)
        const [question] = (await scene.server.ok('/questions', { token: scene.she.token })).data
        await scene.post(`/questions/${question.id}/answer`, { answer: { text: 'her words' } }, scene.she)
        return scene.his
      },
    },
    {
      title: 'he starts his workflow',
      isHis: true,
      act: async (scene) => {
        const name = await makeWorkflow(scene.server, `await agent('Go.', { agent: '${scene.his}' })`, {
          token: scene.he.token,
        })
        await startFlow(scene.server, name, {}, scene.he.token)
        return scene.his
      },
    },
  ],
  agent_request: [
    {
      title: 'her run wakes his agent',
      act: async (scene) => {
        const theirs = await FakeDevice.connect(scene.server, { token: scene.she.token })
        await scene.server.startRun(scene.hers, {}, scene.she.token)
        const work = await theirs.take()
        await scene.server.startRun(scene.his, { prompt: 'her words' }, work.token)
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
        await scene.server.ok(`/devices/${scene.device.identity.deviceId}`, settings)
        const other = (await scene.server.createAgent({}, scene.he.token)).id as string
        await scene.server.startRun(other, {}, scene.he.token)
        const work = await scene.device.take()
        await scene.server.startRun(scene.his, {}, work.token)
        return scene.his
      },
    },
  ],
  manual: [
    {
      title: 'she starts his agent',
      act: async (scene) => (await scene.server.startRun(scene.his, {}, scene.she.token), scene.his),
    },
    {
      title: 'he starts her agent',
      act: async (scene) => (await scene.server.startRun(scene.hers, {}, scene.he.token), scene.hers),
    },
    {
      title: 'he starts his agent on the task that she wrote',
      act: async (scene) => {
        const { key } = await scene.taskOf(scene.she, { description: 'her words' })
        await scene.server.startRun(scene.his, { taskId: key }, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he starts his agent',
      isHis: true,
      act: async (scene) => (await scene.server.startRun(scene.his, {}, scene.he.token), scene.his),
    },
    {
      title: 'he starts his agent, whose AGENT.md she changed',
      act: async (scene) => {
        await writeAgentMd(scene, 'her words', scene.she)
        await scene.server.startRun(scene.his, {}, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he starts his agent, whose AGENT.md she changed and he wrote anew',
      isHis: true,
      act: async (scene) => {
        await writeAgentMd(scene, 'her words', scene.she)
        await writeAgentMd(scene, 'his words', scene.he)
        await scene.server.startRun(scene.his, {}, scene.he.token)
        return scene.his
      },
    },
    {
      title: 'he writes AGENT.md anew while a run waits that follows hers',
      act: async (scene) => {
        await writeAgentMd(scene, 'her words', scene.she)
        await scene.server.startRun(scene.his, {}, scene.he.token)
        await writeAgentMd(scene, 'his words', scene.he)
        return scene.his
      },
    },
    {
      title: 'he does her cancelled run of his agent again',
      act: async (scene) => {
        const runId = await scene.server.startRun(scene.his, { prompt: 'her words' }, scene.she.token)
        await scene.server.ok(`/runs/${runId}/cancel`, { body: {}, token: scene.he.token })
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
} satisfies Record<string, Case[]>
