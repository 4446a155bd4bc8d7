import type { Stage } from '../contract/stage.ts'
import { makeFile } from './kit/files.ts'
import { on, post, thing } from './kit/recipe.ts'
import type { GoodRequest, ResourceFacts } from './kit/resource-facts.ts'

const relation = async (stage: Stage) => ({ entityType: 'run', entityId: await stage.queuedRun(), role: 'attachment' })

async function related(stage: Stage): Promise<GoodRequest> {
  const { id } = await makeFile(stage)
  const added = await stage.server.ok(`/files/${id}/relations`, { body: await relation(stage) })
  return { params: { 'files.id': id, relationId: added.id } }
}

const unknownRelation = '00000000-0000-4000-8000-00000000000c'

export const fileRelationFacts: ResourceFacts = {
  requests: {
    'files.relations.list': related,
    'files.relations.add': async (stage) => ({
      params: { 'files.id': (await makeFile(stage)).id },
      body: await relation(stage),
    }),
    'files.relations.get': related,
    'files.relations.remove': related,
    'files.bulkRelate': async (stage) => ({
      body: { fileIds: [(await makeFile(stage)).id], ...(await relation(stage)) },
    }),
  },
  codes: [
    on('files.relations.add', '409 duplicate_relation', async (stage) => {
      const { id } = await makeFile(stage)
      const body = await relation(stage)
      await stage.server.ok(`/files/${id}/relations`, { body })
      return stage.server.call(`/files/${id}/relations`, post(body))
    }),
    ...(['GET', 'DELETE'] as const).map((method) =>
      on(method === 'GET' ? 'files.relations.get' : 'files.relations.remove', '404 relation_not_found', async (stage) =>
        stage.server.call(`/files/${(await makeFile(stage)).id}/relations/${unknownRelation}`, { method }),
      ),
    ),
  ],
  withoutCommand: {
    'files.relations.get': 'The documents name no command.',
    'files.relations.remove': 'The documents name no command.',
  },
  unknownIds: { relationId: unknownRelation },
  within: [
    [
      'files.relations.get',
      'GET',
      async (stage, ids) => ({ path: `/files/${(await makeFile(stage)).id}/relations/${ids['relationId']}` }),
    ],
  ],
  places: [
    [
      'files.bulkRelate',
      'POST',
      async (stage, ids) => ({
        path: '/files/bulk-relate',
        body: { fileIds: [ids['files.id']], ...(await relation(stage)) },
      }),
    ],
    ...(
      [
        ['task', 'tasks.id'],
        ['project', 'projectId'],
        ['run', 'runId'],
        ['conversation', 'conversations.id'],
        ['comment', 'messages.id'],
      ] as const
    ).map(
      ([entityType, name]) =>
        [
          'files.relations.add',
          'POST',
          async (stage: Stage, ids: Readonly<Record<string, string>>) => ({
            path: `/files/${(await makeFile(stage)).id}/relations`,
            body: { entityType, entityId: ids[name], role: 'spec' },
          }),
        ] as const,
    ),
  ],
  named: { entityId: thing('runId') },
}
