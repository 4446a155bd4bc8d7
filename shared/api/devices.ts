import { z } from 'zod'
import { claimState, providerReadiness } from '../device/protocol.ts'
import { devicePublicId, deviceUuid, timestamp } from './ids.ts'
import { defineRoute, peopleOnly } from './route.ts'

export const livenessStatuses = ['connected', 'disconnected', 'retired'] as const

/** The people whose wakes a device takes. The person at the root of a run's chain of wakes counts. */
export const runsByChoices = ['owner', 'admins', 'members'] as const
export type RunsBy = (typeof runsByChoices)[number]

export const liveness = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('host'),
    status: z.enum(livenessStatuses),
    expiresAt: timestamp.nullable().describe('null before the first heartbeat.'),
  }),
  z.object({ kind: z.literal('controller') }),
])

const displayName = z.string().trim().min(1).max(100).describe('Name shown for the device.')

const metLimit = z
  .object({
    reason: z.enum(['rate_limit', 'provider_overloaded']),
    provider: z.string().describe('The harness, for some with the provider that its model names.'),
    access: z
      .enum(['sign_in', 'key'])
      .describe("`key`: an agent's own key met it; all others, what the device is signed in with."),
    since: timestamp.nullable().describe('null: not known.'),
    until: timestamp,
  })
  .meta({ id: 'DeviceLimit' })

const limitInUse = z
  .object({
    provider: z.string().describe('The harness.'),
    access: metLimit.shape.access,
    limit: z.string().describe('What people call it: `5-hour`, `7-day`, `7-day opus`.'),
    windowMinutes: z.number().int().positive(),
    models: z.string().nullable().describe('The models that it is for; null: all.'),
    usedPercent: z.number().int().nonnegative().describe('Providers let some go beyond 100.'),
    resetsAt: timestamp,
    toldAt: timestamp.describe('When the run ended that told it.'),
  })
  .meta({ id: 'DeviceLimitInUse' })

export const device = z
  .object({
    deviceId: deviceUuid.describe('Of the connection; PATCH and DELETE take this one.'),
    publicId: devicePublicId.describe('Stays the same when the device connects anew.'),
    displayName: z.string(),
    hostname: z.string().nullable(),
    platform: z.string().nullable(),
    version: z.string().nullable(),
    maxConcurrent: z.number().int().min(1).max(10),
    isWorkspaceDefault: z.boolean(),
    liveness,
    online: z.boolean(),
    linked: z
      .boolean()
      .describe(
        'Its link is open now. One whose link closed stays online until its lease ends, and is offered nothing.',
      ),
    retired: z.boolean(),
    lastHeartbeatAt: timestamp.nullable(),
    liveUntil: timestamp,
    providerReadiness: z.union([providerReadiness, z.object({})]).describe('Installed and signed-in harnesses.'),
    providerReadinessCapturedAt: timestamp.nullable(),
    claimState: claimState
      .nullable()
      .describe('Whether the device takes runs, and why not; null before its first report.'),
    limits: z.array(metLimit).describe('What keeps runs of a provider waiting here now, and until when.'),
    limitsInUse: z
      .array(limitInUse)
      .describe("How much of their provider's limits the device's accounts have used, as their last runs told."),
    runsBy: z.enum(runsByChoices).describe('Whose wakes it takes: of its owner, also of admins, or of all members.'),
    remoteControlRevokedAt: timestamp.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Device' })
export type Device = z.infer<typeof device>

const params = z.object({ id: deviceUuid })

export const deviceRoutes = {
  list: defineRoute({
    id: 'devices.list',
    endpoint: 'GET /devices',
    summary: 'List your devices in this workspace',
    callers: peopleOnly,
    reply: z.object({ devices: z.array(device) }),
    cli: { command: 'device list', example: 'svc device list' },
  }),

  update: defineRoute({
    id: 'devices.update',
    endpoint: 'PATCH /devices/{id}',
    summary: 'Change a device',
    description: '`isWorkspaceDefault: false` does nothing; `remoteControlRevoked: false` gives the control back.',
    callers: peopleOnly,
    params,
    body: z
      .strictObject({
        displayName,
        hostname: z.string().trim().min(1).max(255).describe('Host name shown for the device.'),
        maxConcurrentRuns: z.number().int().min(1).max(10).describe('Runs it takes at once.'),
        isWorkspaceDefault: z
          .boolean()
          .describe('true: runs without a folder go to this device. Admins alone make their device the default one.'),
        runsBy: z
          .enum(runsByChoices)
          .describe('Whose wakes it takes: of its owner, also of workspace admins, or of all members.'),
        remoteControlRevoked: z.boolean().describe('true: it takes no runs from others; false: it does again.'),
      })
      .partial()
      .meta({ id: 'DeviceUpdate' }),
    reply: device,
    errors: ['remote_access_forbidden', 'device_not_found'],
    plainErrors: ['plain.device_not_found', 'plain.device_not_owned'],
    cli: {
      command: 'device set',
      flow: true,
      flags: {
        'max-concurrent': { target: 'body.maxConcurrentRuns' },
        default: { target: 'body.isWorkspaceDefault' },
        isolation: {
          description:
            'svc: runs on this machine see neither the folders of svc nor other processes; off: they do. Kept on this machine.',
        },
        device: { target: 'params.id', fallback: 'this_device', description: 'UUID of the device.' },
      },
      example: 'svc device set --max-concurrent 5',
    },
  }),

  delete: defineRoute({
    id: 'devices.delete',
    endpoint: 'DELETE /devices/{id}',
    summary: 'Remove a device and revoke its token',
    callers: peopleOnly,
    params,
    plainErrors: ['plain.device_not_found', 'plain.device_not_owned'],
    cli: {
      command: 'device remove',
      asks: true,
      positionals: [{ name: 'device', target: 'params.id' }],
      example: 'svc device remove 5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b',
    },
  }),
} as const
