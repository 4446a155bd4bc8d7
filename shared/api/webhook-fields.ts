import { z } from 'zod'
import { timestamp, userPublicId, webhookDeliveryId, webhookId, workspaceUuid } from './ids.ts'

// Webhooks as clients read them, and what is sent to their addresses.

/** The events that a webhook may choose, by the thing that its `data` is. */
const eventsOf = {
  run: ['run.succeeded', 'run.failed', 'run.cancelled', 'run.waiting'],
  approval: ['approval.requested', 'approval.resolved'],
  question: ['question.asked', 'question.answered', 'question.closed'],
  task: ['task.created', 'task.status_changed'],
} as const

export const webhookEventTypes = [
  ...eventsOf.run,
  ...eventsOf.approval,
  ...eventsOf.question,
  ...eventsOf.task,
] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]

/** The things that events are about. */
export type WebhookSubject = keyof typeof eventsOf
export const subjectOfEvent = (type: WebhookEventType): WebhookSubject => type.split('.')[0] as WebhookSubject

/** The event of a ping, which nobody chooses. */
export const pingType = 'ping'

export const webhookForms = ['json', 'slack'] as const
export type WebhookForm = (typeof webhookForms)[number]

export const webhookStatuses = ['active', 'disabled'] as const
/**
 * `by_person`: somebody set it. `gone`: its address answered 410. `failing`: its deliveries failed for days. `owner_left`: who made it
 * is no admin of the workspace any more.
 */
export const webhookDisabledReasons = ['by_person', 'gone', 'failing', 'owner_left'] as const

export const webhookDeliveryStatuses = ['waiting', 'succeeded', 'failed'] as const

export const eventChoice = z.enum([...webhookEventTypes, '*'])

export const webhookLimits = {
  perWorkspace: 20,
  /** Deliveries of one webhook that wait to be made. */
  waiting: 1_000,
  /** Deliveries of one webhook that are over and still shown, and for how long. */
  kept: 500,
  keptDays: 30,
} as const

export const webhookFields = {
  url: z
    .string()
    .trim()
    .max(2_000)
    .regex(/^https?:\/\/[^\s]+$/i, 'must be an address that begins with https://')
    .refine((text) => URL.canParse(text), 'is no address')
    .describe('Address that gets the events, with https. Private ones are for the operator to allow.'),
  events: z
    .array(eventChoice)
    .min(1)
    .max(webhookEventTypes.length + 1)
    .transform((events) => [...new Set(events)])
    .describe('Events to send, such as `run.failed`; `*`: all that there are, and those of later releases.'),
  form: z
    .enum(webhookForms)
    .describe('`json`: the event; `slack`: a line of text as incoming webhooks of Slack take it.'),
  description: z.string().trim().max(500).describe('What it is for.'),
}

export const webhook = z
  .object({
    object: z.literal('webhook'),
    id: webhookId,
    workspaceId: workspaceUuid,
    url: z.string(),
    events: z.array(z.string()),
    form: z.enum(webhookForms),
    description: z.string(),
    status: z.enum(webhookStatuses),
    disabledReason: z
      .enum(webhookDisabledReasons)
      .nullable()
      .describe('Why nothing is sent: `by_person`, `gone` (410), `failing` for days, or `owner_left`.'),
    failingSince: timestamp.nullable().describe('No delivery has succeeded since then; null: the last one did.'),
    oldSecretUntil: timestamp
      .nullable()
      .describe('Until then deliveries are signed with the secret before the present one, too.'),
    createdBy: z.object({ type: z.literal('user'), id: userPublicId }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Webhook' })
export type Webhook = z.infer<typeof webhook>

export const webhookWithSecret = webhook
  .extend({ secret: z.string().describe('What deliveries are signed with. It is shown this once.') })
  .meta({ id: 'WebhookWithSecret' })

export const webhookDelivery = z
  .object({
    object: z.literal('webhook_delivery'),
    id: webhookDeliveryId,
    webhookId,
    eventId: z.string().meta({ example: 'evt_4nT8kW2vXqB6mZ9r' }),
    eventType: z.string(),
    status: z.enum(webhookDeliveryStatuses),
    attempts: z.number().int().describe('How often it was sent, or tried to be.'),
    nextAttemptAt: timestamp.nullable(),
    lastAttemptAt: timestamp.nullable(),
    durationMs: z.number().int().nullable().describe('How long the last answer took.'),
    responseStatus: z.number().int().nullable().describe('The status of the last answer; null: there was none.'),
    error: z.string().nullable().describe('Why the last attempt failed.'),
    redeliveryOf: webhookDeliveryId.nullable().describe('The delivery of which somebody asked for this one.'),
    createdAt: timestamp,
  })
  .meta({ id: 'WebhookDelivery' })
export type WebhookDelivery = z.infer<typeof webhookDelivery>

export const webhookDeliveryDetail = webhookDelivery
  .extend({
    payload: z.unknown().describe('The body, as it is sent.'),
    responseBody: z.string().nullable().describe('The beginning of the last answer.'),
  })
  .meta({ id: 'WebhookDeliveryDetail' })
export type WebhookDeliveryDetail = z.infer<typeof webhookDeliveryDetail>
