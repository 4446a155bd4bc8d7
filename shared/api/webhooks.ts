import { z } from 'zod'
import { webhookDeliveryId, webhookId } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { adminsOnly, defineRoute } from './route.ts'
import {
  webhook,
  webhookDelivery,
  webhookDeliveryDetail,
  webhookDeliveryStatuses,
  webhookFields,
  webhookStatuses,
  webhookWithSecret,
} from './webhook-fields.ts'

// Webhooks: addresses to which the events of a workspace are sent, signed.

const params = z.object({ webhookId })
const positionals = [{ name: 'webhook', target: 'params.webhookId' }] as const
const ofDelivery = z.object({ webhookId, deliveryId: webhookDeliveryId })
const deliveryPositionals = [...positionals, { name: 'delivery', target: 'params.deliveryId' }] as const
const exampleId = 'whk_6vN2xQ9kTmB4wZ8r'
const exampleDelivery = 'whd_3kR8nV2mQx7T1wZ9'
const { url, events, form, description } = webhookFields

export const webhookRoutes = {
  list: defineRoute({
    id: 'webhooks.list',
    endpoint: 'GET /webhooks',
    summary: 'List the webhooks of the workspace, newest first (workspace admins)',
    callers: adminsOnly,
    query: z.object(pageParams),
    reply: listOf(webhook),
    cli: { command: 'webhook list', example: 'svc webhook list' },
  }),

  create: defineRoute({
    id: 'webhooks.create',
    endpoint: 'POST /webhooks',
    summary: 'Send events of the workspace to an address (workspace admins); the answer shows the secret once',
    description:
      'The address gets what its maker sees: of private work that is somebody else’s alone nothing is sent. Deliveries are signed with the secret (docs/webhooks.md).',
    callers: adminsOnly,
    isSecret: true,
    body: z
      .strictObject({
        url,
        events,
        form: form.default('json'),
        description: description.default(''),
      })
      .meta({ id: 'WebhookCreate' }),
    reply: webhookWithSecret,
    status: 201,
    errors: ['webhook_url_refused'],
    cli: {
      command: 'webhook create',
      positionals: [{ name: 'url', target: 'body.url' }],
      example: 'svc webhook create https://hooks.example.com/svc --events run.failed,approval.requested',
    },
  }),

  get: defineRoute({
    id: 'webhooks.get',
    endpoint: 'GET /webhooks/{webhookId}',
    summary: 'Read one webhook, never its secret (workspace admins)',
    callers: adminsOnly,
    params,
    reply: webhook,
    errors: ['webhook_not_found'],
    cli: { command: 'webhook get', positionals, example: `svc webhook get ${exampleId}` },
  }),

  update: defineRoute({
    id: 'webhooks.update',
    endpoint: 'PATCH /webhooks/{webhookId}',
    summary: 'Change a webhook, disable it, or have it send again (workspace admins)',
    description:
      'Who changes its address, or makes a disabled one active again, is its maker from then on: it sends what they see.',
    callers: adminsOnly,
    params,
    body: z
      .strictObject({
        url: url.optional(),
        events: events.optional(),
        form: form.optional(),
        description: description.optional(),
        status: z.enum(webhookStatuses).optional().describe('`disabled`: nothing is sent, and what waits is given up.'),
      })
      .meta({ id: 'WebhookUpdate' }),
    reply: webhook,
    errors: ['webhook_not_found', 'webhook_url_refused'],
    cli: { command: 'webhook update', positionals, example: `svc webhook update ${exampleId} --status active` },
  }),

  rotateSecret: defineRoute({
    id: 'webhooks.rotateSecret',
    endpoint: 'POST /webhooks/{webhookId}/rotate-secret',
    summary: 'Give a webhook another secret, shown once; the old one signs, too, for a day (workspace admins)',
    callers: adminsOnly,
    isSecret: true,
    params,
    reply: webhookWithSecret,
    errors: ['webhook_not_found'],
    cli: {
      command: 'webhook rotate-secret',
      asks: true,
      positionals,
      example: `svc webhook rotate-secret ${exampleId}`,
    },
  }),

  delete: defineRoute({
    id: 'webhooks.delete',
    endpoint: 'DELETE /webhooks/{webhookId}',
    summary: 'Delete a webhook and its deliveries (workspace admins)',
    callers: adminsOnly,
    params,
    errors: ['webhook_not_found'],
    cli: { command: 'webhook delete', asks: true, positionals, example: `svc webhook delete ${exampleId}` },
  }),

  ping: defineRoute({
    id: 'webhooks.ping',
    endpoint: 'POST /webhooks/{webhookId}/ping',
    summary: 'Send the event `ping` to a webhook, to try it (workspace admins)',
    callers: adminsOnly,
    params,
    reply: webhookDelivery,
    status: 201,
    errors: ['webhook_not_found', 'webhook_disabled'],
    cli: { command: 'webhook ping', positionals, example: `svc webhook ping ${exampleId}` },
  }),

  deliveries: defineRoute({
    id: 'webhooks.deliveries',
    endpoint: 'GET /webhooks/{webhookId}/deliveries',
    summary: 'List the recent deliveries of a webhook, newest first (workspace admins)',
    callers: adminsOnly,
    params,
    query: z.object({
      status: z.enum(webhookDeliveryStatuses).optional().describe('Only those in this state.'),
      ...pageParams,
    }),
    reply: listOf(webhookDelivery),
    errors: ['webhook_not_found'],
    cli: {
      command: 'webhook deliveries',
      positionals,
      example: `svc webhook deliveries ${exampleId} --status failed`,
    },
  }),

  delivery: defineRoute({
    id: 'webhooks.delivery',
    endpoint: 'GET /webhooks/{webhookId}/deliveries/{deliveryId}',
    summary: 'Read one delivery, with what was sent and answered (workspace admins)',
    callers: adminsOnly,
    params: ofDelivery,
    reply: webhookDeliveryDetail,
    errors: ['webhook_not_found', 'webhook_delivery_not_found'],
    cli: {
      command: 'webhook delivery',
      positionals: deliveryPositionals,
      example: `svc webhook delivery ${exampleId} ${exampleDelivery}`,
    },
  }),

  redeliver: defineRoute({
    id: 'webhooks.redeliver',
    endpoint: 'POST /webhooks/{webhookId}/deliveries/{deliveryId}/redeliver',
    summary: 'Send the event of a delivery again, under the same event id (workspace admins)',
    callers: adminsOnly,
    params: ofDelivery,
    reply: webhookDelivery,
    status: 201,
    errors: ['webhook_not_found', 'webhook_delivery_not_found', 'webhook_disabled'],
    cli: {
      command: 'webhook redeliver',
      positionals: deliveryPositionals,
      example: `svc webhook redeliver ${exampleId} ${exampleDelivery}`,
    },
  }),
} as const
