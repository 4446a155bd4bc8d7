import { fail } from '../../../../shared/api/errors.ts'
import { mailRoutes } from '../../../../shared/api/mail.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import type { PersonCaller } from '../../../http/callers.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { MailError } from '../../../mailer/mailer.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findWorkspace } from '../../workspaces/store.ts'
import { presentMailSettings, testMail } from '../rules.ts'
import {
  findMailSettings,
  insertMailSettings,
  removeMailsOf,
  replaceMailSettings,
  type MailSettingsRow,
} from '../store.ts'

type Routes = typeof mailRoutes
type Dependencies = Pick<ResourceDependencies, 'mailer'>

export function mailHandlers({ mailer }: Dependencies): ImplementedRoute[] {
  const present = (row: MailSettingsRow | null, { email }: PersonCaller) =>
    presentMailSettings(row, { address: email, isOffered: mailer !== null })

  return implement(mailRoutes, {
    async get({ db, caller }) {
      return present(await findMailSettings(db, caller), caller)
    },

    async set(input) {
      const { body, caller, log } = input
      // Whoever wants none need not hear that there is none.
      if (mailer === null && (body.events?.length ?? 0) > 0) fail('mail_not_offered', { param: 'events' })
      const row = await set(input)
      log.info({ user: caller.personRef, events: row.events, about: row.about }, 'a person chose what mail is about')
      return present(row, caller)
    },

    async test({ db, caller, world, log }) {
      if (mailer === null) return fail('mail_not_offered')
      const workspace = await findWorkspace(db, caller.workspaceId)
      const mail = testMail(workspace?.name ?? 'svc')
      try {
        await mailer.send({ to: caller.email, ...mail, key: world.id('evt_') })
      } catch (error) {
        if (!(error instanceof MailError)) throw error
        log.warn({ user: caller.personRef, error: error.message }, 'mail was not sent')
        return fail('mail_not_sent', { message: error.told })
      }
      return present(await findMailSettings(db, caller), caller)
    },
  })
}

async function set({ db, caller, body, world }: HandlerInput<Routes['set']>): Promise<MailSettingsRow> {
  const { workspaceId, personUuid } = caller
  const now = world.now()
  const before = await findMailSettings(db, caller)
  const { events, ...others } = withoutUndefined(body)
  const changes = { ...others, ...(events !== undefined && { events: events ?? [] }), updatedAt: now }
  if (before === null) {
    const row: MailSettingsRow = { workspaceId, personUuid, ...nothingChosen, createdAt: now, ...changes }
    await insertMailSettings(db, row)
    return row
  }
  const after = { ...before, ...changes }
  await replaceMailSettings(db, before, after)
  if (after.events.length === 0) await removeMailsOf(db, caller)
  return after
}

const nothingChosen = {
  events: [],
  about: 'mine',
  dueAt: null,
  attempts: 0,
  sentAt: null,
  error: null,
  version: 1,
} satisfies Partial<MailSettingsRow>
