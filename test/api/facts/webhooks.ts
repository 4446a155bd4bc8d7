import fc from 'fast-check'
import type { TestServer } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { on, patch, plain, post } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const unknown = 'whk_0000000000000000'
const unknownDelivery = 'whd_0000000000000000'
/** Nobody listens there. */
const url = 'http://127.0.0.1:1/hook'
const newWebhook = (body: object = {}) => ({ url, events: ['run.failed'], ...body })

const makeWebhook = async ({ server }: { server: TestServer }, token?: string): Promise<string> =>
  (await server.ok('/webhooks', post(newWebhook(), token))).id as string
const aWebhook: Recipe = async (stage) => ({ params: { webhookId: await makeWebhook(stage) } })

async function makeDelivery(stage: { server: TestServer }, token?: string) {
  const webhookId = await makeWebhook(stage, token)
  const { id } = await stage.server.ok(`/webhooks/${webhookId}/ping`, post(undefined, token))
  return { webhookId, deliveryId: id as string }
}
const aDelivery: Recipe = async (stage) => ({ params: await makeDelivery(stage) })

async function disabled(stage: Stage, path: string) {
  const { webhookId, deliveryId } = await makeDelivery(stage)
  await stage.server.ok(`/webhooks/${webhookId}`, patch({ status: 'disabled' }))
  return stage.server.call(`/webhooks/${webhookId}/${path.replace('ID', deliveryId)}`, { method: 'POST' })
}

const isUnknown = (route: string, method: string, path = '') =>
  on(route, '404 webhook_not_found', ({ server }) =>
    server.call(`/webhooks/${unknown}${path}`, { method, ...(method === 'PATCH' && { body: {} }) }),
  )
const isUnknownDelivery = (route: string, method: string, path = '') =>
  on(route, '404 webhook_delivery_not_found', async (stage) =>
    stage.server.call(`/webhooks/${await makeWebhook(stage)}/deliveries/${unknownDelivery}${path}`, { method }),
  )

export const webhookFacts: ResourceFacts = {
  requests: {
    'webhooks.list': plain,
    'webhooks.create': () => ({ body: newWebhook() }),
    'webhooks.get': aWebhook,
    'webhooks.update': async (stage) => ({ ...(await aWebhook(stage)), body: { events: ['*'] } }),
    'webhooks.rotateSecret': aWebhook,
    'webhooks.delete': aWebhook,
    'webhooks.ping': aWebhook,
    'webhooks.deliveries': aWebhook,
    'webhooks.delivery': aDelivery,
    'webhooks.redeliver': aDelivery,
  },
  codes: [
    isUnknown('webhooks.get', 'GET'),
    isUnknown('webhooks.update', 'PATCH'),
    isUnknown('webhooks.rotateSecret', 'POST', '/rotate-secret'),
    isUnknown('webhooks.delete', 'DELETE'),
    isUnknown('webhooks.ping', 'POST', '/ping'),
    isUnknown('webhooks.deliveries', 'GET', '/deliveries'),
    isUnknown('webhooks.delivery', 'GET', `/deliveries/${unknownDelivery}`),
    isUnknown('webhooks.redeliver', 'POST', `/deliveries/${unknownDelivery}/redeliver`),
    isUnknownDelivery('webhooks.delivery', 'GET'),
    isUnknownDelivery('webhooks.redeliver', 'POST', '/redeliver'),
    on('webhooks.create', '400 webhook_url_refused', ({ server }) =>
      server.call('/webhooks', post(newWebhook({ url: 'https://169.254.169.254/latest' }))),
    ),
    on('webhooks.update', '400 webhook_url_refused', async (stage) =>
      stage.server.call(`/webhooks/${await makeWebhook(stage)}`, patch({ url: 'https://10.0.0.1/' })),
    ),
    on('webhooks.ping', '409 webhook_disabled', (stage) => disabled(stage, 'ping')),
    on('webhooks.redeliver', '409 webhook_disabled', (stage) => disabled(stage, 'deliveries/ID/redeliver')),
  ],

  unknownIds: { webhookId: unknown, deliveryId: unknownDelivery },
  things: async ({ server, person: { token } }) => {
    // Only admins make them: who is none names one that there is not.
    const { status } = await server.call('/webhooks', { token })
    return status === 200 ? makeDelivery({ server }, token) : { webhookId: unknown, deliveryId: unknownDelivery }
  },
  named: {
    url: fc.constantFrom(url, 'https://hooks.example.com/'),
    events: fc.constantFrom(['*'], ['run.failed', 'approval.requested']),
    form: fc.constantFrom('json', 'slack'),
  },
  hostile: {
    url: fc.constantFrom('https://169.254.169.254/', 'http://127.0.0.1:1/', 'https://[::1]/', 'https://user:pw@h/'),
  },
  sharp: ['webhooks.create', 'webhooks.update', 'webhooks.redeliver', 'webhooks.rotateSecret'],
}
