import { hostname } from 'node:os'
import type { z } from 'zod'
import {
  deviceAuthorizationReply,
  deviceFlow,
  deviceTokenReply,
  oauthRefusal,
  type DeviceAuthorizationReply,
} from '../../../shared/api/auth-internal.ts'
import type { CommandContext } from '../../context/context.ts'
import { CliError } from '../../errors/cli-error.ts'
import type { ApiReply } from '../../calls/api-call.ts'
import type { Client } from '../../calls/client.ts'
import { createClient, failureOf, retryAfterMs } from '../../http/client.ts'
import { openBrowser } from '../../machine/browser.ts'
import { callerWith } from '../../sign-in/caller.ts'

/**
 * Signing in by a browser, here or on another machine (RFC 8628): svc shows a code, the person enters it on the
 * server's page, and svc polls the server until that has happened.
 */
const slowDownMs = 5_000
const longestMs = 60_000

/**
 * Returns the new login token. Fails when the person refuses, when nobody decides in time, or when the server does not
 * offer this.
 */
export async function signInByBrowser(
  context: CommandContext,
  options: { server: string; isBrowserWanted: boolean },
): Promise<string> {
  const { world, out } = context
  const client = createClient(callerWith(options.server, ''), world)
  const grant = await begin(client)
  out.message(`svc: open ${grant.verification_uri} and enter the code ${grant.user_code}`)
  out.message(`svc: or open ${grant.verification_uri_complete} and compare the code.`)
  if (options.isBrowserWanted && !(await openBrowser(grant.verification_uri_complete)))
    out.message('svc: no browser could be opened here.')
  out.message(
    `svc: waiting for your answer there, for ${Math.ceil(grant.expires_in / 60)} minutes (Ctrl-C ends this)...`,
  )
  return waitForToken(context, client, grant)
}

async function begin(client: Client): Promise<DeviceAuthorizationReply> {
  const reply = await post(client, deviceFlow.authorizePath, { client_name: hostname() })
  if (reply.status === 404) {
    throw new CliError('no_device_flow', `The server at ${client.caller.server} does not sign in by a browser.`, {
      remediation: `Sign in with a login token: svc login --server ${client.caller.server} --token -`,
    })
  }
  if (reply.status !== 200) throw failureFrom(reply)
  return read(client, deviceAuthorizationReply, reply)
}

async function waitForToken(
  { world }: CommandContext,
  client: Client,
  grant: DeviceAuthorizationReply,
): Promise<string> {
  const endsAt = world.monotonic() + grant.expires_in * 1000
  let intervalMs = grant.interval * 1000
  let waitMs = intervalMs
  while (world.monotonic() + waitMs < endsAt) {
    await world.sleep(waitMs)
    waitMs = intervalMs
    const reply = await poll(client, grant.device_code)
    if (reply?.status === 200) return read(client, deviceTokenReply, reply).access_token
    const code = reply === null ? 'temporarily_unavailable' : (oauthRefusal.safeParse(reply.body).data?.error ?? null)
    if (code === 'slow_down') intervalMs = Math.min(intervalMs + slowDownMs, longestMs)
    else if (code === 'temporarily_unavailable') intervalMs = Math.min(intervalMs * 2, longestMs)
    else if (code === 'access_denied')
      throw new CliError('sign_in_refused', 'The request to sign in was refused.', { exit: 'not_signed_in' })
    else if (code === 'expired_token') break
    else if (code !== 'authorization_pending') throw failureFrom(reply!)
    waitMs = Math.max(intervalMs, reply === null ? 0 : Math.min(retryAfterMs(reply), longestMs))
  }
  throw new CliError('sign_in_expired', 'Nobody entered the code in time.', {
    exit: 'not_signed_in',
    remediation: 'Type `svc login` again for a new code.',
  })
}

/** null: no answer came. The code stays valid whatever happens to one poll, so svc only asks again later. */
async function poll(client: Client, deviceCode: string): Promise<ApiReply | null> {
  try {
    const reply = await post(client, deviceFlow.tokenPath, {
      grant_type: deviceFlow.grantType,
      device_code: deviceCode,
    })
    return [502, 503, 504].includes(reply.status) ? null : reply
  } catch (error) {
    if (error instanceof CliError && error.exit === 'unreachable') return null
    throw error
  }
}

function post(client: Client, path: string, fields: Record<string, string>): Promise<ApiReply> {
  const body = new URLSearchParams({ client_id: deviceFlow.clientId, ...fields })
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  return client.send({ method: 'POST', path, bytes: Buffer.from(body.toString()), headers })
}

function read<T extends z.ZodType>(client: Client, schema: T, reply: ApiReply): z.output<T> {
  const parsed = schema.safeParse(reply.body)
  if (parsed.success) return parsed.data
  throw new CliError('not_our_server', `What answers at ${client.caller.server} is not a server of svc.`, {
    exit: 'unreachable',
  })
}

/** Turns OAuth's refusals into errors of svc. */
function failureFrom(reply: ApiReply): Error {
  const refusal = oauthRefusal.safeParse(reply.body)
  if (!refusal.success) return failureOf(reply)
  const { error, error_description: description } = refusal.data
  return new CliError(`sign_in_${error}`, description ?? `The server refused to sign in: ${error}.`)
}
