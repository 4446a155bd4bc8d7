import { count, flag, person, ref, say, status, text, time, word, type Look, type Looks } from './look.ts'

// Webhooks and their deliveries.

const webhook: Look = {
  columns: [
    ['ID', ref('id')],
    ['ADDRESS', text('url')],
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

export const webhookLooks: Looks = {
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
