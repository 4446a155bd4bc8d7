import fc from 'fast-check'
import { TestServer } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { on, patch, plain, post } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

const withoutMail = (stage: Stage) => stage.other('without mail', () => TestServer.start())
/** Nobody listens there. */
const withDeadMail = (stage: Stage) =>
  stage.other('with dead mail', () =>
    TestServer.start({ settings: { SVC_SMTP_URL: 'smtp://127.0.0.1:1', SVC_MAIL_FROM: 'svc@example.com' } }),
  )

export const mailFacts: ResourceFacts = {
  requests: {
    'mail.get': plain,
    'mail.set': () => ({ body: { events: ['run.failed'], about: 'all' } }),
    'mail.test': plain,
  },
  codes: [
    on('mail.set', '409 mail_not_offered', async (stage) =>
      (await withoutMail(stage)).call('/mail-settings', patch({ events: ['run.failed'] })),
    ),
    on('mail.test', '409 mail_not_offered', async (stage) =>
      (await withoutMail(stage)).call('/mail-settings/test', post()),
    ),
    on('mail.test', '502 mail_not_sent', async (stage) =>
      (await withDeadMail(stage)).call('/mail-settings/test', post()),
    ),
  ],
  named: { about: fc.constantFrom('mine', 'all') },
}
