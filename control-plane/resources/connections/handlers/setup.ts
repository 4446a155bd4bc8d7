import { fail } from '../../../../shared/api/errors.ts'
import type { ConnectionSetup } from '../../../../shared/api/connection-fields.ts'
import { connectionCallbackPath } from '../../../../shared/api/connection-fields.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Service } from '../../../catalog/services.ts'
import type { Db, Tx } from '../../../db/open.ts'
import type { PersonCaller } from '../../../http/callers.ts'
import { OutboundError } from '../../../outbound/outbound-error.ts'
import type { Log } from '../../../process/log.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { filledHeaders, type SignInAttempt } from '../own/credential.ts'
import { ownersOf } from '../lookup.ts'
import { clientFields } from '../mcp-client.ts'
import { beginMcpSignIn } from '../own/mcp-sign-in.ts'
import { beginSignIn, providerOf, ProviderTrouble } from '../own/oauth.ts'
import { askForFields, presentConnection, presentSetup, type NextStep } from '../own/present.ts'
import { needsFields, readKeyFields, type KeyFields } from '../rules.ts'
import { begin, connect } from '../steps/change.ts'
import type { ConnectionRow } from '../store.ts'

// The common part of create and reauthorize: what a service asks for, and what becomes of the connection then.

export type SetupDependencies = Pick<ResourceDependencies, 'root' | 'vault' | 'services' | 'outbound' | 'publicUrl'>

/** The findings from before the transaction, which asks nobody else. */
export type Step =
  | { kind: 'connect'; values: KeyFields | null }
  /** A person is to send the fields of the key, or of a client. */
  | { kind: 'ask'; nextStep: NextStep }
  | { kind: 'begin'; authorizeUrl: string; attempt: SignInAttempt }

/** Checks what was sent, asks the service whether it takes it, or prepares a sign-in. Fails with the codes of a setup. */
export async function prepareStep(
  service: Service,
  given: KeyFields | undefined,
  { deps, before, input }: { deps: SetupDependencies; before: ConnectionRow | null; input: Setting },
): Promise<Step> {
  const { authKind } = service
  const { log } = input
  if (authKind === 'none') {
    await probe(service, {}, { deps, log })
    return { kind: 'connect', values: null }
  }
  if (authKind === 'api_key') {
    if (given === undefined && needsFields(service)) return { kind: 'ask', nextStep: askForFields(service) }
    const values = readFields(service, given ?? {})
    await probe(service, values, { deps, log })
    return { kind: 'connect', values }
  }
  const redirectUri = deps.publicUrl() + connectionCallbackPath
  if (authKind === 'mcp_oauth') return prepareMcpSignIn(service, given, { deps, before, input, redirectUri })
  const provider = providerOf(service)
  if (provider === null)
    return fail('oauth_exchange_failed', {
      message: `The operator of this server has no OAuth client for ${service.label} (SVC_SERVICES_FILE).`,
    })
  const { scopes = [] } = service
  return { kind: 'begin', ...(await beginSignIn(provider, { scopes, redirectUri, outbound: deps.outbound })) }
}

function readFields(service: Service, given: KeyFields): KeyFields {
  const read = readKeyFields(service, given)
  return 'values' in read ? read.values : fail('api_key_invalid', { details: { fields: read.flaws } })
}

async function prepareMcpSignIn(
  service: Service,
  given: KeyFields | undefined,
  { deps, before, input, redirectUri }: McpSetting,
): Promise<Step> {
  const { world, log, caller } = input
  const client = given === undefined ? null : readFields({ ...service, fields: clientFields() }, given)
  const { workspaceId } = caller
  const of = { workspaceId, redirectUri, given: client, isAgain: before?.status === 'pending' }
  try {
    const begun = await beginMcpSignIn({ ...deps, world }, service, of)
    if ('attempt' in begun) return { kind: 'begin', ...begun }
    return { kind: 'ask', nextStep: askForFields({ ...service, fields: clientFields(begun.askAt) }) }
  } catch (error) {
    if (!(error instanceof ProviderTrouble)) throw error
    log.warn({ service: service.id, reason: error.message }, 'a sign-in to an MCP server could not begin')
    return fail('oauth_exchange_failed', { message: error.message })
  }
}
interface McpSetting {
  deps: SetupDependencies
  before: ConnectionRow | null
  input: Setting
  redirectUri: string
}

const probeLimits = { bytes: 1024 * 1024, timeoutMs: 10_000, redirects: 2 } as const

/** Asks the service with the credential. What it says beside the status is shown to nobody: it may repeat what it was sent. */
async function probe(
  { id, label, probe: asked }: Service,
  values: KeyFields,
  { deps: { outbound }, log }: { deps: SetupDependencies; log: Log },
): Promise<void> {
  if (asked === undefined) return
  const refuse = (message: string) => fail('unsupported_auth_kind', { message: `${label} ${message}` })
  let status: number
  try {
    const answer = await outbound.fetch(asked.url, {
      headers: filledHeaders(asked.headers ?? {}, values),
      limits: probeLimits,
    })
    status = answer.status
    await answer.body?.cancel()
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    log.warn({ service: id, reason: error.reason }, 'a service could not be asked about a key')
    return refuse(`could not be asked about the credential: ${error.message}.`)
  }
  if (status < 200 || status > 299) refuse(`did not take the credential: it answered with status ${status}.`)
}

interface Setting {
  db: Db
  world: World
  log: Log
  caller: PersonCaller
}

/** Does the step to a connection that is there, or to a new one. */
export async function takeStep(
  { db, world, log, caller }: Setting & { db: Tx },
  { step, before, blank }: { step: Step; before: ConnectionRow | null; blank: ConnectionRow },
  { vault }: Pick<SetupDependencies, 'vault'>,
): Promise<ConnectionSetup> {
  const changing = { tx: db, world, vault }
  const personUuid = caller.personUuid
  if (step.kind === 'ask') return shownSetup({ db, world }, { row: before, nextStep: step.nextStep })
  const told = (row: ConnectionRow) =>
    log.info(
      { connectionId: row.id, service: row.serviceId, status: row.status, user: personUuid },
      'connection set up',
    )
  if (step.kind === 'begin') {
    const row = await begin(changing, { before, blank, attempt: step.attempt, personUuid })
    told(row)
    return shownSetup({ db, world }, { row, nextStep: { kind: 'oauth_redirect', authorizeUrl: step.authorizeUrl } })
  }
  const held = step.values && ({ kind: 'fields', values: { ...step.values } } as const)
  const row = await connect(changing, { before, blank, held, personUuid })
  told(row)
  return shownSetup({ db, world }, { row, nextStep: { kind: 'none' } })
}

export async function shownSetup(
  { db, world }: Pick<Setting, 'db' | 'world'>,
  { row, nextStep }: { row: ConnectionRow | null; nextStep: NextStep },
): Promise<ConnectionSetup> {
  if (row === null) return presentSetup(nextStep, undefined)
  const owner = (await ownersOf(db, [row]))(row)
  return presentSetup(nextStep, presentConnection(row, { owner, now: world.now() }))
}
