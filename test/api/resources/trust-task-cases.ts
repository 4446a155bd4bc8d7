import { afterAMinute, comment, later, type Case } from './trust-scene.ts'

/** What people do with tasks, by the trigger source of the wake that follows. */
export const taskCases = {
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
      act: async ({ server, taskOf, post, he, she, his }) => {
        const { id } = await taskOf(he, { description: 'his words' })
        await server.ok(`/tasks/${id}`, { body: { description: 'her words' }, token: she.token })
        await post(`/tasks/${id}/assign`, { assignee: his }, he)
        return his
      },
    },
    {
      title: 'he writes her task anew and gives it',
      isHis: true,
      act: async ({ server, taskOf, post, he, she, his }) => {
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
        const { id } = await later(scene, scene.he, { assignee: scene.his })
        await scene.server.ok(`/tasks/${id}`, { body: { title: `hers ${id}` }, token: scene.she.token })
        await afterAMinute(scene)
        return scene.his
      },
    },
    {
      title: 'the start of his task comes',
      isHis: true,
      act: async (scene) => {
        await later(scene, scene.he, { assignee: scene.his })
        await afterAMinute(scene)
        return scene.his
      },
    },
    {
      title: 'she has the task that she wrote and he gave begin now',
      act: async (scene) => {
        const { id } = await later(scene, scene.she, {})
        await scene.post(`/tasks/${id}/assign`, { assignee: scene.his }, scene.he)
        await scene.server.ok(`/tasks/${id}`, { body: { startAt: null }, token: scene.he.token })
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
} satisfies Record<string, Case[]>
