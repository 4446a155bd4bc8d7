import { z } from 'zod'
import { deviceIdentity } from './device-identity.ts'
import { isolationChoices, isolationState } from './isolation.ts'
import { accountLimit, claimState, providerReadiness } from './protocol.ts'

// The messages of `svc device ...` and the daemon over `<state>/daemon.sock`: one request as a line of JSON, one reply
// as a line of JSON, then the daemon closes. Only the owner can open the socket (0600), so no other proof is needed.

/** The longest line of a request, and of a reply, in bytes. */
export const controlLimits = { requestBytes: 16 * 1024, replyBytes: 16 * 1024 * 1024, replyMs: 10_000 } as const

const runId = z.string().max(64)

export const controlRequest = z.discriminatedUnion('op', [
  z.object({ op: z.literal('status') }),
  /** Looks at folders and harnesses again, and reports what changed. */
  z.object({ op: z.literal('refresh') }),
  /** Asks the server for this device's settings now. */
  z.object({ op: z.literal('sync_config') }),
  /**
   * `on: true` refuses new runs for five seconds (whoever waits longer asks again); `false` accepts them again. Live
   * runs go on.
   */
  z.object({ op: z.literal('drain'), on: z.boolean() }),
  z.object({ op: z.literal('spool') }),
  /** Sends again all spooled events that the server has not acknowledged. */
  z.object({ op: z.literal('spool_replay'), runId: runId.optional() }),
  /** Logs an error and counts it, to show where errors go. */
  z.object({ op: z.literal('test_error'), message: z.string().max(1000).optional() }),
  /** Tries the wall and turns it on, or turns it off. */
  z.object({ op: z.literal('set_isolation'), isolation: z.enum(isolationChoices) }),
  /** Ends the daemon after the reply. Its runs go on in their run hosts; the next daemon finds them. */
  z.object({ op: z.literal('stop') }),
])
export type ControlRequest = z.infer<typeof controlRequest>
export type ControlOp = ControlRequest['op']

export const controlLink = z.object({
  state: z.enum(['connected', 'connecting', 'stopped']),
  /** Milliseconds since 1970, of the last change of `state`. */
  since: z.number().int().nullable(),
  lastError: z.string().max(4000).nullable(),
})

export const controlRun = z.object({
  runId,
  fence: z.number().int().positive(),
  /** The state's name in the daemon's run machine. */
  state: z.string().max(64),
  agent: z.string().max(200).nullable(),
  startedAt: z.number().int().nullable(),
})
export type ControlRun = z.infer<typeof controlRun>

export const spooledRun = z.object({
  runId,
  fence: z.number().int().positive(),
  lastSeq: z.number().int().nonnegative(),
  ackedSeq: z.number().int().nonnegative(),
  rows: z.number().int().nonnegative(),
  bytes: z.number().int().nonnegative(),
  ended: z.boolean(),
})
export type SpooledRun = z.infer<typeof spooledRun>

/** The value of a good reply, by operation. */
export const controlValues = {
  status: z.object({
    pid: z.number().int().positive(),
    version: z.string().max(64),
    startedAt: z.number().int(),
    publicId: z.string().max(64),
    deviceId: z.string().max(64),
    displayName: z.string().max(255),
    server: z.string().max(2000),
    link: controlLink,
    capacity: z.number().int().nonnegative(),
    accepting: z.boolean(),
    reason: claimState.shape.reason,
    runs: z.array(controlRun),
    readiness: providerReadiness.nullable(),
    spool: z.object({ rows: z.number().int().nonnegative(), bytes: z.number().int().nonnegative() }),
    isolation: isolationState,
    /** Limits of accounts, left out by older daemons. */
    limits: z.array(accountLimit).optional(),
    /** null: unknown on this platform. */
    service: z.object({ installed: z.boolean(), startedByService: z.boolean().optional() }).nullable(),
    /** On macOS alone: launchd's name of the daemon's session (null: it has ended), and whether the session's services answer it (null: not known). */
    loginSession: z.object({ manager: z.string().max(64).nullable(), trusts: z.boolean().nullable() }).optional(),
  }),
  refresh: z.object({
    readiness: providerReadiness,
    folders: z.array(
      z.object({
        shortId: z.string().max(64),
        rootPath: z.string().max(4096),
        ok: z.boolean(),
        message: z.string().nullable(),
      }),
    ),
  }),
  sync_config: z.object({
    displayName: z.string().max(255),
    capacity: z.number().int().nonnegative(),
    remoteControlRevoked: z.boolean(),
  }),
  drain: z.object({ draining: z.boolean(), runs: z.array(controlRun) }),
  spool: z.object({ runs: z.array(spooledRun) }),
  spool_replay: z.object({ runs: z.number().int().nonnegative(), rows: z.number().int().nonnegative() }),
  test_error: z.object({
    logPath: z.string().max(4096),
    errorId: z.string().max(200),
    count: z.number().int().positive(),
  }),
  set_isolation: isolationState,
  stop: z.object({ pid: z.number().int().positive(), runs: z.array(controlRun) }),
} satisfies Record<ControlOp, z.ZodType>
export type ControlValue<O extends ControlOp> = z.infer<(typeof controlValues)[O]>
export type ControlStatus = ControlValue<'status'>

/** `not_connected`: the operation needs the link, which is down. */
export const controlErrorCodes = ['bad_request', 'unknown_op', 'not_connected', 'no_such_run', 'failed'] as const

/** `value` is parsed again with the schema of the operation in `controlValues`. */
export const controlReply = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), value: z.unknown() }),
  z.object({
    ok: z.literal(false),
    error: z.object({ code: z.enum(controlErrorCodes), message: z.string().max(4000) }),
  }),
])

/** `<state>/refused.json`: why its server no longer takes the device. */
export interface DeviceRefusal {
  /** Name of the close code. */
  reason: string
  text: string
  /** ms */
  at: number
}
export const enrolReply = deviceIdentity.extend({ token: z.string().min(1).max(200) })
export type EnrolReply = z.infer<typeof enrolReply>
