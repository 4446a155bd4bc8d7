import type * as OpenidClient from 'openid-client'
import { z } from 'zod'
import type { Service } from '../../../catalog/services.ts'
import { OutboundError } from '../../../outbound/outbound-error.ts'
import type { Outbound } from '../../../outbound/outbound.ts'
import type { OauthCredential, SignInAttempt } from './credential.ts'

// OAuth with the provider of a service: the code flow with PKCE, renewal and revocation (RFC 6749, 7636, 7009, 9207), all through the
// outbound client. The library is loaded when it is first needed.

/** The provider said no: asking again changes nothing. Its message may be shown. */
export class ProviderRefusal extends Error {
  override name = 'ProviderRefusal'
}

/** An answer of the provider is missing or none: it was out of reach or failed. Nobody knows what it did, if anything. */
export class ProviderTrouble extends Error {
  override name = 'ProviderTrouble'
}

export interface Tokens {
  accessToken: string
  /** null: the one before goes on, if there is one. */
  refreshToken: string | null
  /** null: not said. */
  lifetimeMs: number | null
  /** null: those that were asked for. */
  scopes: string[] | null
}

export type OutboundFetch = Pick<Outbound, 'fetch'>
/** A provider with this server's client there. */
export type Provider = Omit<NonNullable<Service['oauth']>, 'env'> & {
  clientId: string
  /** The server that tokens are for (RFC 8707); left out: the provider is not told. */
  resource?: string | undefined
  /** The provider says who it is with each code (RFC 9207): a code that comes without is not its. */
  saysIssuer?: boolean | undefined
}

const limits = { bytes: 1024 * 1024, timeoutMs: 15_000, redirects: 0 } as const

/** The provider with the operator's client; null: there is none. */
export function providerOf({ oauth }: Service): Provider | null {
  return oauth?.clientId === undefined ? null : { ...oauth, clientId: oauth.clientId }
}

/** Returns whether a credential was given by this provider to this client: it is sent to no other. */
export const isOfProvider = (provider: Provider, held: OauthCredential): boolean =>
  provider.issuer === held.issuer && provider.tokenUrl === held.tokenUrl && provider.clientId === held.clientId

/** Returns the address to which the person is sent, and what the exchange of the code needs later. Asks nobody. */
export async function beginSignIn(
  provider: Provider,
  { scopes, redirectUri, outbound }: { scopes: readonly string[]; redirectUri: string; outbound: OutboundFetch },
): Promise<{ authorizeUrl: string; attempt: SignInAttempt }> {
  const library = await import('openid-client')
  const attempt = {
    state: library.randomState(),
    codeVerifier: library.randomPKCECodeVerifier(),
    redirectUri,
    issuer: provider.issuer,
  }
  const url = library.buildAuthorizationUrl(await configurationOf(provider, outbound), {
    // OpenID Connect Core, section 11: offline access is given where the person is asked for it.
    ...(scopes.includes('offline_access') && { prompt: 'consent' }),
    ...provider.params,
    ...forResource(provider),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    redirect_uri: redirectUri,
    state: attempt.state,
    code_challenge: await library.calculatePKCECodeChallenge(attempt.codeVerifier),
    code_challenge_method: 'S256',
  })
  return { authorizeUrl: url.href, attempt }
}

/** Exchanges the code in the query with which the browser came back. Fails with ProviderRefusal and ProviderTrouble. */
export async function exchangeCode(
  provider: Provider,
  { attempt, search, outbound }: { attempt: SignInAttempt; search: string; outbound: OutboundFetch },
): Promise<Tokens> {
  const url = new URL(attempt.redirectUri)
  url.search = search
  return guarded(async (library) =>
    tokensIn(
      await library.authorizationCodeGrant(
        await configurationOf(provider, outbound),
        url,
        { pkceCodeVerifier: attempt.codeVerifier, expectedState: attempt.state },
        forResource(provider),
      ),
    ),
  )
}

/** Fails with ProviderRefusal when the provider takes the token no more, and with ProviderTrouble. */
export async function renewTokens(provider: Provider, refreshToken: string, outbound: OutboundFetch): Promise<Tokens> {
  return guarded(async (library) =>
    tokensIn(
      await library.refreshTokenGrant(await configurationOf(provider, outbound), refreshToken, forResource(provider)),
    ),
  )
}

/** Withdraws the tokens at the provider, when it can be asked to. Fails with ProviderRefusal and ProviderTrouble. */
export async function withdrawTokens(
  provider: Provider,
  held: OauthCredential,
  outbound: OutboundFetch,
): Promise<void> {
  if (provider.revokeUrl === undefined) return
  const { accessToken, refreshToken } = held
  const [token, hint] = refreshToken === null ? [accessToken, 'access_token'] : [refreshToken, 'refresh_token']
  await guarded(async (library) =>
    library.tokenRevocation(await configurationOf(provider, outbound), token, { token_type_hint: hint }),
  )
}

const forResource = ({ resource }: Provider): Record<string, string> => (resource === undefined ? {} : { resource })

async function configurationOf(provider: Provider, outbound: OutboundFetch): Promise<OpenidClient.Configuration> {
  const library = await import('openid-client')
  const { issuer, authorizeUrl, tokenUrl, revokeUrl, clientId, clientSecret, clientAuth, saysIssuer } = provider
  const server = {
    issuer,
    authorization_endpoint: authorizeUrl,
    token_endpoint: tokenUrl,
    ...(revokeUrl !== undefined && { revocation_endpoint: revokeUrl }),
    ...(saysIssuer === true && { authorization_response_iss_parameter_supported: true }),
  }
  const authenticate =
    clientSecret === undefined
      ? library.None()
      : clientAuth === 'post'
        ? library.ClientSecretPost(clientSecret)
        : library.ClientSecretBasic(clientSecret)
  const configuration = new library.Configuration(server, clientId, undefined, authenticate)
  // The outbound client refuses plain http but for hosts that the operator allows.
  library.allowInsecureRequests(configuration)
  configuration[library.customFetch] = async (url, options) =>
    asRfcSays(await outbound.fetch(url, { ...(options as RequestInit), limits }))
  return configuration
}

/**
 * Turns an answer into what the RFC has: some providers answer an error with status 200. An id token is left out: nobody here asks who the
 * person is, and it may be signed in ways that would have to be known.
 */
async function asRfcSays(answer: Response): Promise<Response> {
  const text = await answer.text()
  const { status, headers } = answer
  if (!answer.ok || text === '') return new Response(text === '' ? null : text, { status, headers })
  const body: unknown = parsed(text)
  if (typeof body !== 'object' || body === null) return new Response(text, { status, headers })
  const { id_token: _, ...rest } = body as Record<string, unknown>
  const isError = typeof rest['error'] === 'string' && rest['access_token'] === undefined
  return new Response(JSON.stringify(rest), { status: isError ? 400 : status, headers })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const tokenAnswer = z.object({
  // The token is sent in a header.
  access_token: z
    .string()
    .max(100_000)
    .regex(/^[\x21-\x7e]+$/),
  refresh_token: z.string().min(1).max(100_000).nullish(),
  expires_in: z.coerce
    .number()
    .positive()
    .max(10 * 366 * 86_400)
    .nullish()
    .catch(null),
  scope: z.string().max(10_000).nullish().catch(null),
})

function tokensIn(answer: unknown): Tokens {
  const { access_token, refresh_token, expires_in, scope } = tokenAnswer.parse(answer)
  return {
    accessToken: access_token,
    refreshToken: refresh_token ?? null,
    lifetimeMs: expires_in == null ? null : Math.floor(expires_in * 1_000),
    scopes: scope == null ? null : scope.split(/[\s,]+/).filter((each) => each !== ''),
  }
}

type Library = typeof OpenidClient

/** Errors that are about this server's client, or pass by themselves: the sign-in of the person may still be good. */
const passing = new Set(['invalid_client', 'temporarily_unavailable', 'server_error', 'slow_down'])

async function guarded<T>(work: (library: Library) => Promise<T>): Promise<T> {
  const library = await import('openid-client')
  try {
    return await work(library)
  } catch (error) {
    if (error instanceof library.AuthorizationResponseError)
      throw new ProviderRefusal(`The provider says \`${codeIn(error.error)}\`.`, { cause: error })
    if (error instanceof library.ResponseBodyError && error.status < 500 && error.status !== 429) {
      const said = `The provider says \`${codeIn(error.error)}\`.`
      throw passing.has(error.error)
        ? new ProviderTrouble(said, { cause: error })
        : new ProviderRefusal(said, { cause: error })
    }
    // RFC 6749, section 5.2: whose client comes with a wrong secret in a header is answered by a challenge.
    if (error instanceof library.WWWAuthenticateChallengeError)
      throw new ProviderTrouble('The provider does not take the client of this server.', { cause: error })
    const outbound = outboundIn(error)
    // The texts of other errors may quote what was sent.
    const message =
      outbound === null
        ? 'The provider gave an answer that is none.'
        : `The provider could not be asked: ${outbound.message}.`
    throw new ProviderTrouble(message, { cause: error })
  }
}

/** The error of the outbound client, which libraries wrap. */
export function outboundIn(error: unknown): OutboundError | null {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof OutboundError) return at
  return null
}

/** The codes of RFC 6749 are such words. */
const codeIn = (text: string): string => (/^[\w.-]{1,100}$/.test(text) ? text : 'an error')
