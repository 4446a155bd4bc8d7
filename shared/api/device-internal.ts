import { z } from 'zod'
import { enrolReply } from '../device/control.ts'
import { nonceBytes } from '../device/server-proof.ts'
import { devicePublicId, deviceUuid, workspaceUuid } from './ids.ts'
import { defineRoute, peopleOnly, type BodyOf } from './route.ts'

// Routes between `svc device` and the control plane. They are not part of the public API: the OpenAPI document and
// `svc` leave them out. The link itself is a WebSocket (shared/device).

export const deviceInternalRoutes = {
  enrol: defineRoute({
    id: 'device.enrol',
    endpoint: 'POST /device/enrol',
    base: '/api',
    summary: 'Make this machine a device of the person, or give it a new connection',
    description: 'Only with a login token. An earlier `publicId` of the person is kept and its old token revoked.',
    callers: peopleOnly,
    idempotency: 'none',
    body: z.object({
      publicId: devicePublicId.optional(),
      displayName: z.string().trim().min(1).max(100).optional(),
      hostname: z.string().trim().min(1).max(255),
      platform: z.string().min(1).max(64),
      version: z.string().min(1).max(64),
    }),
    reply: enrolReply,
    status: 201,
    cli: null,
  }),

  prove: defineRoute({
    id: 'device.prove',
    endpoint: 'POST /device/proof',
    base: '/api',
    summary: 'Prove to a device of the person that this is its server, at whatever address',
    description: 'The device draws the nonce and sends no token of its own; see shared/device/server-proof.ts.',
    callers: peopleOnly,
    idempotency: 'none',
    body: z.object({
      publicId: devicePublicId,
      nonce: z
        .string()
        .regex(/^[0-9a-f]+$/, 'must be hexadecimal digits')
        .length(nonceBytes * 2),
    }),
    reply: z.object({ proofs: z.array(z.string()).describe('One for each token that the device may have.') }),
    cli: null,
  }),

  disconnect: defineRoute({
    id: 'device.disconnect',
    endpoint: 'POST /device/disconnect',
    base: '/api',
    summary: 'Remove the device whose token is sent; refused while it holds live runs',
    callers: 'none',
    idempotency: 'none',
    errors: ['http_exception', 'auth_missing', 'auth_invalid'],
    cli: null,
  }),

  config: defineRoute({
    id: 'device.config',
    endpoint: 'GET /device/config',
    base: '/api',
    summary: 'Read the settings of the device whose token is sent',
    callers: 'none',
    reply: z.object({
      publicId: devicePublicId,
      deviceId: deviceUuid,
      workspaceId: workspaceUuid,
      displayName: z.string(),
      maxConcurrent: z.number().int(),
      isWorkspaceDefault: z.boolean(),
      remoteControlRevoked: z.boolean(),
      heartbeatMs: z.number().int(),
      leaseMs: z.number().int(),
      folders: z
        .array(z.object({ shortId: z.string(), displayName: z.string(), rootPath: z.string() }))
        .describe('The folders on this device.'),
    }),
    errors: ['auth_missing', 'auth_invalid'],
    cli: null,
  }),
} as const

export type EnrolRequest = BodyOf<typeof deviceInternalRoutes.enrol>
