import type { ClientAuth, Configuration } from 'openid-client'
import { z } from 'zod'
import { boundedFetch } from './bounded-fetch.ts'

/**
 * The issuer where people sign in (OpenID Connect, code flow with PKCE). The library is loaded, and the issuer asked
 * for its addresses, at the first sign-in there: a server without an issuer pays nothing, and one whose issuer is down
 * still starts.
 */
export interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
}

export interface OidcAttempt {
  state: string
  nonce: string
  codeVerifier: string
}

export interface OidcPerson {
  subject: string
  /** null unless the issuer says that it verified the address. */
  verifiedEmail: string | null
}

export interface OidcClient {
  readonly issuer: string
  /** Shown on the button. */
  readonly issuerHost: string
  /** Returns the address to send the browser to. Fails with OidcTrouble. */
  begin(redirectUri: string): Promise<{ url: string; attempt: OidcAttempt }>
  /**
   * Returns the person who came back; `url` is the address to which the issuer sent the browser. Fails with
   * OidcTrouble.
   */
  finish(url: URL, attempt: OidcAttempt): Promise<OidcPerson>
}

/** The issuer cannot be reached, refuses, or sends an invalid answer. */
export class OidcTrouble extends Error {
  override name = 'OidcTrouble'
}

const timeoutS = 10
const scope = 'openid email'
const claimsSchema = z.object({
  sub: z.string().min(1).max(255),
  email: z.string().max(320).optional(),
  // OpenID Connect Core, section 5.1, wants a boolean; some issuers send it as a text.
  email_verified: z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]).optional(),
})

export function createOidcClient(settings: OidcSettings): OidcClient {
  let known: Promise<Configuration> | null = null
  const configuration = async () => {
    known ??= discover(settings)
    try {
      return await known
    } catch (error) {
      // Asked again next time: the issuer may only have been down.
      known = null
      throw error
    }
  }
  return {
    issuer: settings.issuer,
    issuerHost: new URL(settings.issuer).host,
    begin: (redirectUri) => guarded(async () => begin(await configuration(), redirectUri)),
    finish: (url, attempt) => guarded(async () => finish(await configuration(), url, attempt)),
  }
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<Configuration> {
  const library = await import('openid-client')
  const url = new URL(issuer)
  // The library trusts a token that came straight from the issuer unless it is told to check the signature, too. The
  // configuration accepts plain http only for an issuer on this machine.
  const execute = [
    library.enableNonRepudiationChecks,
    ...(url.protocol === 'http:' ? [library.allowInsecureRequests] : []),
  ]
  const [basic, post] = [library.ClientSecretBasic(clientSecret), library.ClientSecretPost(clientSecret)]
  const authenticate: ClientAuth = (server, ...rest) => {
    // An issuer that names no method uses the basic one (OpenID Connect Discovery, section 3).
    const isBasic = server.token_endpoint_auth_methods_supported?.includes('client_secret_basic') ?? true
    return isBasic ? basic(server, ...rest) : post(server, ...rest)
  }
  return library.discovery(url, clientId, undefined, authenticate, {
    execute,
    timeout: timeoutS,
    [library.customFetch]: (at, options) => boundedFetch(at, options as RequestInit),
  })
}

async function begin(config: Configuration, redirectUri: string) {
  const library = await import('openid-client')
  const attempt = {
    state: library.randomState(),
    nonce: library.randomNonce(),
    codeVerifier: library.randomPKCECodeVerifier(),
  }
  const url = library.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await library.calculatePKCECodeChallenge(attempt.codeVerifier),
    code_challenge_method: 'S256',
  })
  return { url: url.href, attempt }
}

async function finish(config: Configuration, url: URL, attempt: OidcAttempt): Promise<OidcPerson> {
  const library = await import('openid-client')
  const tokens = await library.authorizationCodeGrant(config, url, {
    pkceCodeVerifier: attempt.codeVerifier,
    expectedState: attempt.state,
    expectedNonce: attempt.nonce,
    idTokenExpected: true,
  })
  const own = claimsSchema.parse(tokens.claims())
  const { userinfo_endpoint: endpoint } = config.serverMetadata()
  // Many issuers keep the address out of the token. The library ensures that the separate answer is about the same
  // subject.
  const claims =
    own.email === undefined && endpoint !== undefined
      ? claimsSchema.parse(await library.fetchUserInfo(config, tokens.access_token, own.sub))
      : own
  const isVerified = claims.email !== undefined && claims.email_verified === true
  return { subject: own.sub, verifiedEmail: isVerified ? claims.email!.toLowerCase() : null }
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new OidcTrouble(error instanceof Error ? error.message : String(error), { cause: error })
  }
}
