import fc from 'fast-check'
import { nobody, on, postKeyed, thing } from './kit/recipe.ts'
import type { CodeRecipe, ResourceFacts } from './kit/resource-facts.ts'
import {
  aTask,
  aTaskWith,
  atTask,
  makeTask,
  missing,
  ofTask,
  strangersTask,
  unknownTask as unknown,
} from './kit/tasks.ts'

const unknownItem = 'chk_0000000000000000'

const codes: readonly CodeRecipe[] = [
  on('tasks.checklist.add', '400 invalid_checklist_item', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/checklist`, { text: '' }),
  ),
  on('tasks.checklist.update', '400 invalid_checklist_item', async (stage) => {
    const { id, checklist } = await makeTask(stage, { checklist: ['x'] })
    return postKeyed(stage, `/tasks/${id}/checklist/${checklist[0].id}`, { text: '' })
  }),
  on('tasks.checklist.update', '404 checklist_item_not_found', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/checklist/${unknownItem}`, { done: true }),
  ),
  on('tasks.dependencies.add', '400 dependency_cycle', async (stage) => {
    const { id } = await makeTask(stage)
    return postKeyed(stage, `/tasks/${id}/dependencies`, { dependsOnTaskId: id })
  }),
  on('tasks.dependencies.add', '404 dependency_task_not_found', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/dependencies`, { dependsOnTaskId: unknown }),
  ),
  on('tasks.dependencies.add', '400 cross_company_dependency', async (stage) => {
    const { id } = await makeTask(stage)
    return postKeyed(stage, `/tasks/${id}/dependencies`, { dependsOnTaskId: await strangersTask(stage) })
  }),
  on('tasks.dependencies.remove', '404 dependency_not_found', async (stage) =>
    postKeyed(stage, `/tasks/${(await makeTask(stage)).id}/dependencies/${unknown}/remove`),
  ),
  ...['add', 'remove'].map((what) =>
    on(`tasks.watchers.${what}`, '404 watcher_not_found', async (stage) => {
      const path = `/tasks/${(await makeTask(stage)).id}/watchers${what === 'add' ? '' : '/remove'}`
      return postKeyed(stage, path, { type: 'user', id: nobody })
    }),
  ),

  missing('tasks.dependencies.list', '/dependencies'),
  missing('tasks.watchers.list', '/watchers'),
  missing('tasks.checklist.add', '/checklist', { text: 'x' }),
  missing('tasks.checklist.update', '/checklist/chk_1', { done: true }),
  missing('tasks.dependencies.add', '/dependencies', { dependsOnTaskId: unknown }),
  missing('tasks.dependencies.remove', `/dependencies/${unknown}/remove`),
  missing('tasks.watchers.add', '/watchers', { type: 'user', id: 'usr_1' }),
  missing('tasks.watchers.remove', '/watchers/remove', { type: 'user', id: 'usr_1' }),
]

export const taskLinkFacts: ResourceFacts = {
  requests: {
    'tasks.checklist.add': aTaskWith({ text: 'Test it' }),
    'tasks.checklist.update': async (stage) => {
      const task = await makeTask(stage, { checklist: ['Test it'] })
      return { params: { ...ofTask(task), itemId: task.checklist[0].id }, body: { done: true } }
    },
    'tasks.dependencies.list': aTask,
    'tasks.dependencies.add': async (stage) => ({
      ...(await aTask(stage)),
      body: { dependsOnTaskId: (await makeTask(stage)).id },
    }),
    'tasks.dependencies.remove': async (stage) => {
      const blocker = await makeTask(stage)
      const task = await makeTask(stage, { dependsOn: [blocker.key] })
      return { params: { ...ofTask(task), dependencyId: blocker.id } }
    },
    'tasks.watchers.list': aTask,
    'tasks.watchers.add': async (stage) => ({
      ...(await aTask(stage)),
      body: { type: 'user', id: stage.member.userId },
    }),
    'tasks.watchers.remove': async (stage) => ({
      ...(await aTask(stage)),
      body: { type: 'user', id: stage.owner.userId },
    }),
  },
  codes,

  // `tasks.ts` makes what they name.
  unknownIds: { itemId: unknownItem, dependencyId: unknown },
  places: [
    ['tasks.watchers.add', 'POST', (stage, ids) => atTask(stage, '/watchers', { type: 'agent', id: ids['agentId'] })],
    ['tasks.watchers.add', 'POST', (stage, ids) => atTask(stage, '/watchers', { type: 'user', id: ids['userId'] })],
  ],
  within: [
    ['tasks.checklist.update', 'POST', (stage, ids) => atTask(stage, `/checklist/${ids['itemId']}`, { done: true })],
    ['tasks.dependencies.remove', 'POST', (stage, ids) => atTask(stage, `/dependencies/${ids['dependencyId']}/remove`)],
  ],
  named: { dependsOnTaskId: fc.oneof(thing('taskId'), thing('dependencyId')) },
}
