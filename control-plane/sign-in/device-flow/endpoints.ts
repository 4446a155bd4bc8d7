import type Koa from 'koa'
import {
  deviceFlow,
  type DeviceAuthorizationReply,
  type DeviceTokenReply,
  type OauthError,
} from '../../../shared/api/auth-internal.ts'
import { ApiError } from '../../../shared/api/errors.ts'
import { base62 } from '../../../shared/lib/world.ts'
import { databaseTroubleOf } from '../../db/dialect.ts'
import type { Tx } from '../../db/open.ts'
import { hashToken } from '../../http/token-hash.ts'
import type { RequestState } from '../../http/kernel.ts'
import { issueToken } from '../issue-token.ts'
import { findRole, findUser } from '../../resources/members/store.ts'
import type { SignInDependencies } from '../dependencies.ts'
import { countFailure, countIfFailed } from '../limit.ts'
import { addressFor, PageRefusal, readForm } from '../request.ts'
import { deviceFlowLimits, pollOutcome, showUserCode, userCodeBytes, userCodeFrom } from './rules.ts'
import { claimGrantRedemption, findGrantToPoll, insertDeviceGrant, replaceGrantPoll, type GrantRow } from './store.ts'
import { inTransaction } from '../../db/transaction.ts'

// The two endpoints that `svc` calls while a person signs it in (RFC 8628, sections 3.1 to 3.5).

class OauthRefusal extends Error {
  override name = 'OauthRefusal'
  readonly code: OauthError
  readonly status: number
  constructor(code: OauthError, message: string, status = 400) {
    super(message)
    this.code = code
    this.status = status
  }
}

type Fields = Map<string, string>

/** Section 3.1: makes a grant with its two codes. */
export async function authorize(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  await answerOauth(ctx, () =>
    countIfFailed(ctx, deps, async () => {
      ctx.body = await newGrant(ctx, deps)
    }),
  )
}

async function newGrant(ctx: Koa.Context, deps: SignInDependencies): Promise<DeviceAuthorizationReply> {
  const fields = await readClientForm(ctx, deps)
  const { world } = deps
  const deviceCode = base62(world.bytes(64), 43)
  const at = world.now()
  const userCode = await insertWithCode(deps, {
    id: world.id('dag_'),
    deviceCodeHash: hashToken(deviceCode),
    clientName: clientNameFrom(fields),
    address: ctx.ip,
    intervalMs: deviceFlowLimits.intervalMs,
    createdAt: at,
    expiresAt: at + deviceFlowLimits.lifeMs,
  })
  const uri = addressFor(ctx, deps) + deviceFlow.pagePath
  const shown = showUserCode(userCode)
  return {
    device_code: deviceCode,
    user_code: shown,
    verification_uri: uri,
    verification_uri_complete: `${uri}?user_code=${shown}`,
    expires_in: deviceFlowLimits.lifeMs / 1000,
    interval: deviceFlowLimits.intervalMs / 1000,
  }
}

/** The code may equal that of an older grant; then another one is made. */
async function insertWithCode(
  { root, world }: SignInDependencies,
  grant: Omit<Parameters<typeof insertDeviceGrant>[1], 'userCodeHash'>,
): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const userCode = userCodeFrom(world.bytes(userCodeBytes))
    try {
      await insertDeviceGrant(root, { ...grant, userCodeHash: hashToken(userCode) })
      return userCode
    } catch (error) {
      if (attempt === 4 || databaseTroubleOf(error) !== 'duplicate') throw error
    }
  }
}

/** The name the machine gives itself. People see it, so it is cut and holds only harmless characters. */
function clientNameFrom(fields: Fields): string {
  const name = (fields.get('client_name') ?? '').replaceAll(/[^\p{L}\p{N} ._@-]/gu, '').trim()
  return name.slice(0, 100) || 'an unnamed machine'
}

/** Section 3.4: answers a poll, with the login token once the person has approved. */
export async function answerTokenPoll(ctx: Koa.Context, deps: SignInDependencies): Promise<void> {
  await answerOauth(ctx, async () => {
    const fields = await readClientForm(ctx, deps)
    if (fields.get('grant_type') !== deviceFlow.grantType)
      throw new OauthRefusal('unsupported_grant_type', `Only ${deviceFlow.grantType} is offered here.`)
    const deviceCode = fields.get('device_code') ?? ''
    if (deviceCode === '') throw new OauthRefusal('invalid_request', 'device_code is missing.')
    const answer = await inTransaction(deps.root, (tx) => poll(tx, deps, hashToken(deviceCode)))
    if (typeof answer === 'object') {
      deps.log.info({ user: answer.userId, tokenId: answer.tokenId }, 'svc was signed in')
      ctx.body = { access_token: answer.token, token_type: 'Bearer' } satisfies DeviceTokenReply
      return
    }
    // A known code has its own pace, so that several people behind one address do not share a limit; guesses do share
    // it.
    if (answer === 'invalid_grant') await countFailure(ctx, deps)
    throw new OauthRefusal(answer, sentences[answer])
  })
}

const sentences = {
  authorization_pending: 'Nobody has approved this yet.',
  slow_down: 'Ask less often: the interval is five seconds longer now.',
  access_denied: 'The person refused, or is no member of the workspace any more.',
  expired_token: 'The ten minutes are over.',
  invalid_grant: 'The device code is unknown, or was used.',
} as const

/** Outcomes are values here, not errors: the record of the poll must be committed with them. */
async function poll(tx: Tx, { world }: SignInDependencies, deviceCodeHash: string) {
  const grant = await findGrantToPoll(tx, deviceCodeHash)
  if (grant === null) return 'invalid_grant'
  const at = world.now()
  const outcome = pollOutcome(grant, at)
  if (outcome === 'redeem') return redeem(tx, world, grant)
  if (outcome === 'authorization_pending' || outcome === 'slow_down') {
    const added = outcome === 'slow_down' ? deviceFlowLimits.slowDownMs : 0
    await replaceGrantPoll(tx, grant.id, { at, intervalMs: grant.intervalMs + added })
  }
  return outcome
}

async function redeem(tx: Tx, world: SignInDependencies['world'], grant: GrantRow) {
  const { personUuid, workspaceId } = grant
  if (personUuid === null || workspaceId === null || !(await claimGrantRedemption(tx, grant.id))) return 'invalid_grant'
  const user = await findUser(tx, personUuid)
  // The person may have left meanwhile.
  if (user === null || (await findRole(tx, workspaceId, personUuid)) === null) return 'access_denied'
  return issueToken(tx, world, { user, workspaceId, name: `svc login on ${grant.clientName}` })
}

async function readClientForm(ctx: Koa.Context, deps: SignInDependencies): Promise<Fields> {
  const fields = await readForm(ctx, deps)
  if (fields === null)
    throw new OauthRefusal('invalid_request', 'Send application/x-www-form-urlencoded, each field once.')
  if (fields.get('client_id') !== deviceFlow.clientId)
    throw new OauthRefusal('invalid_client', `client_id must be ${deviceFlow.clientId}.`, 401)
  return fields
}

async function answerOauth(ctx: Koa.Context, work: () => Promise<void>): Promise<void> {
  ctx.set('Cache-Control', 'no-store')
  try {
    await work()
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal === null) throw error
    if (error instanceof ApiError)
      for (const [name, value] of Object.entries(error.options.headers ?? {})) ctx.set(name, value)
    ctx.status = refusal.status
    ctx.body = { error: refusal.code, error_description: refusal.message }
    ;(ctx.state as RequestState).code = refusal.code
  }
}

/** Returns null for errors that this protocol does not know: the kernel answers those. */
function refusalOf(error: unknown): OauthRefusal | null {
  if (error instanceof OauthRefusal) return error
  if (error instanceof PageRefusal) return new OauthRefusal('invalid_request', error.message)
  if (!(error instanceof ApiError)) return null
  if (error.status === 429) return new OauthRefusal('slow_down', error.message, 429)
  if (error.status >= 500) return new OauthRefusal('temporarily_unavailable', error.message, 503)
  return new OauthRefusal('invalid_request', error.message, error.status)
}
