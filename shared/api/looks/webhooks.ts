import { count, flag, person, ref, say, status, text, time, word, type Look, type Looks } from './look.ts'

// Webhooks and their deliveries, and mail.

const webhook: Look = {
  columns: [
    ['ID', ref('id')],
    ['ADDRESS', text('url'), 32],
    ['STATUS', status('status', { why: ['disabledReason'] })],
    ['EVENTS', text('events')],
    ['FAILING SINCE', time('failingSince')],
    ['FORM', word('form')],
    ['ABOUT', text('description')],
    ['CREATED', time('createdAt')],
  ],
  title: text('url'),
  under: [status('status', { why: ['disabledReason'] }), word('form'), text('description')],
  facts: [
    ['ID', ref('id')],
    ['Events', text('events')],
    ['Failing since', time('failingSince')],
    ['Old secret signs until', time('oldSecretUntil')],
    ['Created', time('createdAt')],
    ['Created by', person('createdBy')],
    ['Changed', time('updatedAt')],
  ],
  next: [
    { say: 'svc webhook update {id} --status active', when: { at: 'status', is: ['disabled'] } },
    { say: 'svc webhook deliveries {id}' },
  ],
}

const delivery: Look = {
  columns: [
    ['ID', ref('id')],
    ['EVENT', text('eventType')],
    ['STATUS', status('status')],
    ['ANSWER', count('responseStatus')],
    ['ATTEMPTS', count('attempts')],
    ['WHEN', time('createdAt')],
    ['NEXT', time('nextAttemptAt')],
    ['WHY NOT', text('error')],
  ],
  title: text('eventType'),
  under: [status('status'), flag('redeliveryOf', 'sent again by hand')],
  facts: [
    ['ID', ref('id')],
    ['Event', ref('eventId')],
    ['Answer', count('responseStatus')],
    ['Took', say('{durationMs} ms')],
    ['Attempts', count('attempts')],
    ['Last attempt', time('lastAttemptAt')],
    ['Next attempt', time('nextAttemptAt')],
    ['Why it failed', text('error')],
    ['Same as', ref('redeliveryOf')],
    ['Created', time('createdAt')],
  ],
}

const mail: Look = {
  columns: [
    ['ADDRESS', ref('address')],
    ['EVENTS', text('events')],
    ['ABOUT', word('about')],
    ['LAST SENT', time('lastSentAt')],
    ['WHY NOT', text('error')],
  ],
  title: ref('address'),
  under: [{ as: 'flag', at: 'isOffered', yes: '', no: 'this server sends no mail' }],
  facts: [
    ['Events', text('events')],
    ['About', word('about')],
    ['Last sent', time('lastSentAt')],
    ['Why it failed', text('error')],
    ['Changed', time('updatedAt')],
  ],
  next: [
    {
      say: 'svc mail set --events approval.requested,question.asked,run.failed',
      when: { at: 'isOffered', is: [true] },
    },
  ],
}

export const webhookLooks: Looks = {
  MailSettings: mail,
  Webhook: webhook,
  WebhookWithSecret: {
    ...webhook,
    facts: [['Secret, shown this once', ref('secret')], ...(webhook.facts ?? [])],
    next: [{ say: 'svc webhook ping {id}' }],
  },
  WebhookDelivery: { ...delivery, next: [{ say: 'svc webhook delivery {webhookId} {id}' }] },
  WebhookDeliveryDetail: {
    ...delivery,
    sections: [
      { heading: 'Sent', json: 'payload' },
      { heading: 'Answered', text: 'responseBody' },
    ],
    next: [{ say: 'svc webhook redeliver {webhookId} {id}', when: { at: 'status', is: ['failed', 'succeeded'] } }],
  },
}
