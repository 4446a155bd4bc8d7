import { z } from 'zod'
import { timestamp } from './ids.ts'
import { defineRoute, peopleOnly } from './route.ts'
import { eventChoice, webhookEventTypes } from './webhook-fields.ts'

// Mail to a person about what happens in a workspace. Events are those of webhooks.

/** `mine`: what I asked for, made, was given, watch or shall decide; `all`: all that I see. */
const mailScopes = ['mine', 'all'] as const
export type MailScope = (typeof mailScopes)[number]

const about = z
  .enum(mailScopes)
  .describe('`mine`: what you asked for, made, assigned, watch or are to decide; `all`: all that you see.')
const events = z
  .array(eventChoice)
  .max(webhookEventTypes.length + 1)
  .transform((chosen) => [...new Set(chosen)])
  .describe('Events to be told of, such as `run.failed`; `*`: all of them; null, or none: no mail.')

export const mailSettings = z
  .object({
    object: z.literal('mail_settings'),
    isOffered: z.boolean().describe('The server has an SMTP server by which it sends.'),
    address: z.string().describe('Where mail goes: the address by which you sign in.'),
    events: z.array(z.string()),
    about: z.enum(mailScopes),
    lastSentAt: timestamp.nullable(),
    error: z.string().nullable().describe('Why the last mail could not be sent; null: it was.'),
    updatedAt: timestamp.nullable().describe('null: nothing was chosen yet.'),
  })
  .meta({ id: 'MailSettings' })
export type MailSettings = z.infer<typeof mailSettings>

export const mailRoutes = {
  get: defineRoute({
    id: 'mail.get',
    endpoint: 'GET /mail-settings',
    summary: 'Read what you get mail about in this workspace (people)',
    callers: peopleOnly,
    reply: mailSettings,
    cli: { command: 'mail get', example: 'svc mail get' },
  }),

  set: defineRoute({
    id: 'mail.set',
    endpoint: 'PATCH /mail-settings',
    summary: 'Choose what you get mail about in this workspace (people)',
    description: 'Fields that are left out stay. With no events, mail that still waits is dropped.',
    callers: peopleOnly,
    body: z
      .strictObject({ events: events.nullable().optional(), about: about.optional() })
      .meta({ id: 'MailSettingsUpdate' }),
    reply: mailSettings,
    errors: ['mail_not_offered'],
    cli: { command: 'mail set', example: 'svc mail set --events approval.requested,question.asked,run.failed' },
  }),

  test: defineRoute({
    id: 'mail.test',
    endpoint: 'POST /mail-settings/test',
    summary: 'Send yourself a mail, to try it (people)',
    callers: peopleOnly,
    rate: 'mail',
    transaction: false,
    reply: mailSettings,
    errors: ['mail_not_offered', 'mail_not_sent'],
    cli: { command: 'mail test', example: 'svc mail test' },
  }),
}
