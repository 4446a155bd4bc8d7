import fc from 'fast-check'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { evil, on, patch, plain, post } from './kit/recipe.ts'
import type { CodeRecipe, GoodRequest, ResourceFacts } from './kit/resource-facts.ts'

/** A program that waits for an agent that has no device. */
const program = (name: string, body = `await agent('Work', { agent: input.who })`) =>
  `export const meta = { name: '${name}', title: 'Flow', inputs: [{ key: 'who', kind: 'agent' }] }\n${body}`

const newName = ({ server }: Pick<Stage, 'server'>) => `flow_${server.world.uuid().replaceAll('-', '')}`

async function makeWorkflow(stage: Pick<Stage, 'server'>, token?: string): Promise<string> {
  const name = newName(stage)
  const asked = { body: { source: program(name) }, ...(token === undefined ? {} : { token }) }
  await stage.server.ok('/workflows/records', asked)
  return name
}

async function startFlow(stage: Pick<Stage, 'server'>, who: string, token?: string): Promise<string> {
  const workflow = await makeWorkflow(stage, token)
  const asked = { body: { workflow, input: { who } }, ...(token === undefined ? {} : { token }) }
  return (await stage.server.ok('/workflows/runs', asked)).id as string
}

const one = async (stage: Stage): Promise<GoodRequest> => ({ params: { name: await makeWorkflow(stage) } })
const oneRun = async (stage: Stage): Promise<GoodRequest> => ({
  params: { workflowRunId: await startFlow(stage, await stage.agent()) },
})

const flaws: readonly [code: string, source: string][] = [
  ['workflow_syntax', `${program('x')}\nconst`],
  ['workflow_import', `import 'fs'\n${program('x')}`],
  ['workflow_banned_global', `${program('x')}\nfetch('x')`],
  ['workflow_meta_missing', 'return 1'],
  ['workflow_meta_not_literal', 'export const meta = make()'],
  ['workflow_meta_invalid', "export const meta = { name: 'Upper', title: 'x' }"],
]

/** A server whose operator turned workflows off. */
const withoutEngine = (stage: Stage): Promise<TestServer> =>
  stage.other('without workflows', () => TestServer.start({ settings: { SVC_WORKFLOWS: 'off' } }))
const withoutCatalog = (stage: Stage): Promise<TestServer> =>
  stage.other('without a catalog', () =>
    TestServer.start({ settings: { SVC_WORKFLOW_CATALOG_DIR: '/no/such/folder' } }),
  )

const pathOf = {
  'workflows.catalog': '/workflows/catalog',
  'workflows.source': '/workflows/source?workflow=implement_and_review',
} as const

const codes: readonly CodeRecipe[] = [
  ...flaws.flatMap(([code, source]) => [
    on('workflows.records.create', `400 ${code}`, ({ server }) => server.call('/workflows/records', post({ source }))),
    on('workflows.records.update', `400 ${code}`, async (stage) =>
      stage.server.call(`/workflows/records/${await makeWorkflow(stage)}`, patch({ source })),
    ),
  ]),
  on('workflows.records.create', '409 workflow_name_taken', async (stage) =>
    stage.server.call('/workflows/records', post({ source: program(await makeWorkflow(stage)) })),
  ),
  on('workflows.records.update', '400 workflow_name_mismatch', async (stage) =>
    stage.server.call(`/workflows/records/${await makeWorkflow(stage)}`, patch({ source: program('other') })),
  ),
  on('workflows.runs.start', '404 resource_not_found', ({ server }) =>
    server.call('/workflows/runs', post({ workflow: 'no_such_flow' })),
  ),
  on('workflows.runs.start', '503 workflows_not_configured', async (stage) => {
    const server = await withoutEngine(stage)
    return server.call('/workflows/runs', post({ workflow: await makeWorkflow({ server }) }))
  }),
  ...(['workflows.catalog', 'workflows.source'] as const).flatMap((route) => [
    on(route, '503 workflows_not_configured', async (stage) => (await withoutEngine(stage)).call(pathOf[route])),
    on(
      route,
      `502 ${route === 'workflows.catalog' ? 'workflows_catalog_unavailable' : 'workflow_source_unavailable'}`,
      async (stage) => (await withoutCatalog(stage)).call(pathOf[route]),
    ),
  ]),
  on('workflows.source', '404 resource_not_found', ({ server }) => server.call('/workflows/source?workflow=none')),
  on('workflows.runs.get', '404 resource_not_found', ({ server }) =>
    server.call('/workflows/runs/flr_0000000000000000'),
  ),
  on('workflows.records.get', '404 resource_not_found', ({ server }) => server.call('/workflows/records/none')),
  on('workflows.records.update', '404 resource_not_found', ({ server }) =>
    server.call('/workflows/records/none', patch({ source: program('none') })),
  ),
  on('workflows.records.retire', '404 resource_not_found', ({ server }) =>
    server.call('/workflows/records/none', { method: 'DELETE' }),
  ),
  on('workflows.runs.start', '400 validation_error', async (stage) =>
    stage.server.call('/workflows/runs', post({ workflow: await makeWorkflow(stage), input: { color: 'red' } })),
  ),
  on('workflows.runs.cancel', '422 invalid_status_transition', async (stage) => {
    const path = `/workflows/runs/${await startFlow(stage, await stage.agent())}/cancel`
    const first = await stage.server.call(path, post())
    if (outcomeOf(first) !== '200') return first
    return stage.server.call(path, post())
  }),
]

export const workflowFacts: ResourceFacts = {
  requests: {
    'workflows.runs.start': async (stage) => ({
      body: { workflow: await makeWorkflow(stage), input: { who: await stage.agent() } },
    }),
    'workflows.runs.list': plain,
    'workflows.runs.get': oneRun,
    'workflows.runs.cancel': oneRun,
    'workflows.catalog': plain,
    'workflows.source': () => ({ query: { workflow: 'implement_and_review' } }),
    'workflows.records.list': plain,
    'workflows.records.create': (stage) => ({ body: { source: program(newName(stage)) } }),
    'workflows.records.get': one,
    'workflows.records.update': async (stage) => {
      const name = await makeWorkflow(stage)
      return { params: { name }, body: { source: program(name, 'return 1') } }
    },
    'workflows.records.retire': one,
  },
  codes,
  notOnRoute: {
    'workflows_not_configured workflows.records.create': 'A program is checked and stored without an engine, too.',
    'workflows_not_configured workflows.records.update': 'A program is checked and stored without an engine, too.',
  },

  unknownIds: { workflowRunId: 'flr_0000000000000000', name: 'no_such_flow' },
  things: async ({ server, person, agentId }) => {
    const name = await makeWorkflow({ server }, person.token)
    return { name, workflowRunId: await startFlow({ server }, agentId, person.token) }
  },
  places: [
    ['workflows.runs.start', 'POST', (_, ids) => ({ path: '/workflows/runs', body: { workflow: ids['name'] } })],
    [
      'workflows.runs.start',
      'POST',
      async (stage, ids) => ({
        path: '/workflows/runs',
        body: { workflow: await makeWorkflow(stage), taskId: ids['taskId'] },
      }),
    ],
    ['workflows.runs.list', 'GET', (_, ids) => ({ path: `/workflows/runs?workflow=${ids['name']}` })],
  ],
  named: { source: fc.constant(program('drawn')) },
  hostile: {
    source: fc.constant(program('evil_gate', `await gate(['${evil}'], { agent: '<agentId>' })`)),
    workflow: fc.constant('evil_gate'),
  },
  sharp: ['workflows.records.create', 'workflows.records.update', 'workflows.runs.start'],
}
