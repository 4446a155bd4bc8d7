import { z } from 'zod'
import { devicePublicId, loginTokenId, timestamp, userPublicId, workspaceUuid } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { adminsOnly, defineRoute, peopleOnly, roles } from './route.ts'

// Signing in. `svc` and the server's own pages use these routes; they are not part of the public API, so the OpenAPI
// document leaves them out. docs/sign-in.md describes them.

/** The two endpoints of RFC 8628. They use its formats: urlencoded requests and `{ "error": ... }` refusals. */
export const deviceFlow = {
  authorizePath: '/api/auth/device',
  tokenPath: '/api/auth/token',
  /** The only client. It is public, so its id is no secret. */
  clientId: 'svc',
  grantType: 'urn:ietf:params:oauth:grant-type:device_code',
  /** The page on which a person enters the code. */
  pagePath: '/device',
} as const

/** An address that is printed on a terminal, so it may hold only visible characters. */
const pageAddress = z
  .url({ protocol: /^https?$/ })
  .max(2000)
  .regex(/^[!-~]+$/)

export const deviceAuthorizationReply = z.object({
  device_code: z.string().min(1).max(500),
  user_code: z.string().regex(/^[ -~]{1,50}$/),
  verification_uri: pageAddress,
  verification_uri_complete: pageAddress,
  /** Seconds, like `interval`. */
  expires_in: z.number().int().min(1).max(86_400),
  interval: z.number().int().min(1).max(600).default(5),
})
export type DeviceAuthorizationReply = z.infer<typeof deviceAuthorizationReply>

export const deviceTokenReply = z.object({
  access_token: z.string().min(1).max(4096),
  token_type: z.string().regex(/^bearer$/i),
})
export type DeviceTokenReply = z.infer<typeof deviceTokenReply>

/** RFC 6749, section 5.2, and RFC 8628, section 3.5. */
export const oauthErrors = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unsupported_grant_type',
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'temporarily_unavailable',
  'server_error',
] as const
export type OauthError = (typeof oauthErrors)[number]
export const oauthRefusal = z.object({ error: z.enum(oauthErrors), error_description: z.string().max(1000).optional() })

export const loginTokenEntry = z.object({
  id: loginTokenId,
  name: z.string(),
  userId: userPublicId,
  email: z.string(),
  workspaceId: workspaceUuid,
  createdAt: timestamp,
  lastUsedAt: timestamp.nullable(),
  expiresAt: timestamp.nullable(),
  /** True: the entry is the token of this very call. */
  isCurrent: z.boolean(),
})
export type LoginTokenEntry = z.infer<typeof loginTokenEntry>

export const deviceEntry = z.object({
  id: devicePublicId,
  name: z.string(),
  userId: userPublicId,
  email: z.string(),
  lastSeenAt: timestamp.nullable(),
})

export const authMe = z.object({
  userId: userPublicId,
  name: z.string(),
  email: z.string(),
  /** The workspace in which this call is made, and the role in it. */
  workspaceId: workspaceUuid,
  role: z.enum(roles),
  release: z.string().describe('The release of the server.'),
})

export const authInternalRoutes = {
  me: defineRoute({
    id: 'auth.me',
    endpoint: 'GET /auth/me',
    base: '/api',
    summary: 'Read who you are, and your role in this workspace',
    callers: peopleOnly,
    reply: authMe,
    cli: null,
  }),

  listTokens: defineRoute({
    id: 'auth.tokens.list',
    endpoint: 'GET /auth/tokens',
    base: '/api',
    summary: 'List your valid login tokens of this workspace; admins may list those of everybody in it',
    callers: peopleOnly,
    query: z.object({
      all: z.boolean().default(false).describe('The tokens of all people of the workspace, for admins.'),
      ...pageParams,
    }),
    reply: listOf(loginTokenEntry),
    errors: ['http_exception'],
    cli: null,
  }),

  revokeToken: defineRoute({
    id: 'auth.tokens.revoke',
    endpoint: 'DELETE /auth/tokens/{id}',
    base: '/api',
    summary: 'Revoke a login token of yours, or as an admin anybody’s in the workspace, from the next request on',
    callers: peopleOnly,
    params: z.object({ id: loginTokenId }),
    reply: z.object({ id: loginTokenId, revoked: z.literal(true) }),
    cli: null,
  }),
} as const

/** Admins remove devices from their workspace by this route; owners by `DELETE /devices/{id}`. */
export const accessRoutes = {
  listDevices: defineRoute({
    id: 'auth.devices.list',
    endpoint: 'GET /auth/devices',
    base: '/api',
    summary: 'List the devices of everybody in the workspace, for admins',
    callers: adminsOnly,
    reply: z.object({ devices: z.array(deviceEntry) }),
    errors: ['http_exception'],
    cli: null,
  }),

  revokeDevice: defineRoute({
    id: 'auth.devices.revoke',
    endpoint: 'DELETE /auth/devices/{id}',
    base: '/api',
    summary: 'Remove anybody’s device from the workspace, for admins: it is cut off at once, its runs end',
    callers: adminsOnly,
    params: z.object({ id: devicePublicId }),
    reply: z.object({ id: devicePublicId, revoked: z.literal(true) }),
    errors: ['http_exception'],
    cli: null,
  }),
} as const
