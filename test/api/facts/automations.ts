import fc from 'fast-check'
import { TestServer, type Reply } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { on, plain, post } from './kit/recipe.ts'
import type { CodeRecipe, GoodRequest, ResourceFacts } from './kit/resource-facts.ts'

const webhook = { type: 'webhook' }
const onMerge = { event: 'pull_request.merged', repo: 'acme/web' }

async function create(stage: Stage, changes: Record<string, unknown> = {}) {
  const agentId = await stage.agent()
  return stage.server.ok('/automations', {
    body: { name: 'Watch', trigger: webhook, agentId, prompt: 'Look', ...changes },
  })
}
const one = async (stage: Stage): Promise<GoodRequest> => ({ params: { automationId: (await create(stage)).id } })
const inStatus = (status: string) => async (stage: Stage) => {
  const { id } = await create(stage)
  await stage.server.ok(`/automations/${id}`, { body: { status } })
  return { params: { automationId: id } }
}
const tokenOf = (automation: { webhookUrl: string }) => automation.webhookUrl.split('/').at(-1) ?? ''

const unknown = 'aut_0000000000000000'
const ofUnknown: readonly [route: string, path: string, isRead?: true][] = [
  ['automations.get', '', true],
  ['automations.update', ''],
  ['automations.pause', '/pause'],
  ['automations.resume', '/resume'],
  ['automations.archive', '/archive'],
  ['automations.unarchive', '/unarchive'],
  ['automations.rotate', '/rotate'],
  ['automations.run', '/run'],
  ['automations.runs.list', '/runs', true],
  ['automations.skips.list', '/skips', true],
]

/** A refusal of a create and the same of an update. */
const ofBoth = (outcome: string, changes: Record<string, unknown>): CodeRecipe[] => [
  on('automations.create', outcome, async (stage) => {
    const body = { name: 'x', trigger: webhook, agentId: await stage.agent(), prompt: 'x', ...changes }
    return stage.server.call('/automations', post(body))
  }),
  on('automations.update', outcome, async (stage) =>
    stage.server.call(`/automations/${(await create(stage)).id}`, post(changes)),
  ),
]

/** A server that no operator connected to GitHub. */
async function unconnected(
  stage: Stage,
  provoke: (server: TestServer, agentId: string) => Promise<Reply>,
): Promise<Reply> {
  const server = await stage.other('without GitHub', () => TestServer.start())
  return provoke(server, (await server.createAgent()).id as string)
}

const codes: readonly CodeRecipe[] = [
  ...ofUnknown.map(([route, path, isRead]) =>
    on(route, '404 automation_not_found', ({ server }) =>
      server.call(`/automations/${unknown}${path}`, isRead === true ? {} : post()),
    ),
  ),
  on('automationHooks.fire', '404 automation_not_found', ({ server }) =>
    server.call('/automation-hooks/unknown', { ...post(), token: null }),
  ),
  ...ofBoth('404 agent_not_found', { agentId: '@nobody' }),
  ...ofBoth('400 workflow_needs_github_trigger', { workflow: 'review' }),
  on('automations.create', '400 github_not_installed', (stage) =>
    unconnected(stage, (server, agentId) =>
      server.call('/automations', post({ name: 'x', trigger: onMerge, agentId, prompt: 'x' })),
    ),
  ),
  on('automations.update', '400 github_not_installed', (stage) =>
    unconnected(stage, async (server, agentId) => {
      const body = { name: 'x', trigger: webhook, agentId, prompt: 'x' }
      const { id } = await server.ok('/automations', { body })
      return server.call(`/automations/${id}`, post({ trigger: onMerge }))
    }),
  ),
  on('automations.run', '400 workflow_needs_github_event', async (stage) => {
    const { id } = await create(stage, { trigger: onMerge, workflow: 'review' })
    return stage.server.call(`/automations/${id}/run`, post())
  }),
  on('automations.rotate', '400 not_a_webhook_trigger', async (stage) => {
    const { id } = await create(stage, { trigger: { cron: '0 3 * * *' } })
    return stage.server.call(`/automations/${id}/rotate`, post())
  }),
  on('automationHooks.fire', '413 payload_too_large', async (stage) => {
    const token = tokenOf(await create(stage))
    return stage.server.call(`/automation-hooks/${token}`, post({ text: 'x'.repeat(1024 * 1024) }))
  }),
  on('automationHooks.fire', '429 rate_limit_exceeded', async (stage) => {
    const path = `/automation-hooks/${tokenOf(await create(stage))}`
    for (let call = 0; call < 60; call++) await stage.server.ok(path, post())
    return stage.server.call(path, post())
  }),
]

export const automationFacts: ResourceFacts = {
  requests: {
    'automations.create': async (stage) => ({
      body: { name: 'Nightly', trigger: { cron: '0 3 * * *' }, agentId: await stage.agent(), prompt: 'Update' },
    }),
    'automations.list': plain,
    'automations.runs.all': plain,
    'automations.get': one,
    'automations.update': async (stage) => ({ ...(await one(stage)), body: { name: 'Renamed' } }),
    'automations.pause': one,
    'automations.resume': inStatus('paused'),
    'automations.archive': one,
    'automations.unarchive': inStatus('archived'),
    'automations.rotate': one,
    'automations.run': one,
    'automations.runs.list': one,
    'automations.skips.list': one,
    'automationHooks.fire': async (stage) => ({ params: { token: tokenOf(await create(stage)) }, body: { n: 1 } }),
  },
  codes,

  // `token` is that of the address of a webhook, and of an invite.
  unknownIds: { automationId: unknown, token: 'unknown-invite' },
  things: async ({ server, person, agentId }) => {
    const body = { name: 'Watch', trigger: webhook, agentId, prompt: 'x' }
    const automation = await server.ok('/automations', { token: person.token, body })
    return { automationId: automation.id, token: tokenOf(automation) }
  },
  bearerIds: ['token'],
  places: [
    ['automations.list', 'GET', (_, ids) => ({ path: `/automations?agentId=${ids['agentId']}` })],
    [
      'automations.create',
      'POST',
      (_, ids) => ({
        path: '/automations',
        body: { name: 'A', prompt: 'x', trigger: webhook, agentId: ids['agentId'] },
      }),
    ],
  ],
  hostile: {
    trigger: fc.constantFrom<unknown>(webhook, { cron: '* * * * *' }),
    status: fc.constant('active'),
  },
}
