import { idIn } from '../lib/id-schema.ts'
import type { RunId } from '../lib/ids.ts'
import { z } from 'zod'
import { exitReasonNames } from '../runs/exit-reasons.ts'
import { askedCall, askedCallLimits } from '../runs/asked-call.ts'
import { mcpConnectionId } from '../runs/mcp-servers.ts'
import { usageData } from '../runs/events.ts'
import { offeredSkill, runSkillLimits, unavailableReasons } from '../runs/skills.ts'
import { deviceSpans } from '../runs/spans.ts'
import { runSpec } from '../runs/spec.ts'
import { usedLimits } from './used-limits.ts'
import { triedActs } from '../runs/wall-acts.ts'
import { cutText, deviceTime } from './bounds.ts'
import { credentialAnswer } from './credential.ts'
import { folderCheck, folderFacts, servedFolder, watchedFolders } from './folder-check.ts'
import { isolationLevels } from './isolation.ts'
import { linkLimits } from './limits.ts'

// The messages of a link, one union per direction. Messages are added, never changed: recorded frames of each version
// must parse for ever, and receivers ignore unknown fields. `docs/link-protocol.md` describes their order.
//
// State-carrying messages are repeated until the other end answers: `run.accepted` until `run.start` or
// `run.withdrawn`, `run.ended` until `run.closed`, events until `ack`. `welcome` repeats after each reconnect what the
// server must tell a device (start, cancel, give up).

const runId = idIn<RunId>(z.string().regex(/^run_[0-9A-Za-z]{16}$/))
const fence = z.number().int().positive()
const seq = z.number().int().nonnegative()
const ofRun = { runId, fence }
const bundleHash = offeredSkill.shape.bundleHash

/**
 * Wraps a field that nobody reads. Receivers of the last release require it, so it is sent until none of them are left; those of
 * this one do without it.
 */
const unread = <Field extends z.ZodType>(field: Field) => field.optional()

const isName = ([name]: [string, unknown]) => name.length <= 64

/** Installed and signed-in harnesses, for display and for choosing a device. */
export const providerReadiness = z.object({
  harnesses: z
    .record(
      z.string(),
      z.object({
        installed: z.boolean(),
        version: cutText(200).nullable(),
        /** null: cannot be known without using credentials. */
        signedIn: z.boolean().nullable(),
        /** The device does not run it, since it is older than the oldest version that works. */
        tooOld: z.boolean().optional(),
        /** A sentence that says what to do so that it is ready. */
        message: cutText(2_000).nullable(),
        /** A digest of the account it is signed in with; left out where the harness does not say. */
        account: z
          .string()
          .regex(/^[0-9a-f]{32}$/)
          .optional(),
      }),
    )
    // The number is bounded by more than a device has: each look for a place for a run reads what is stored of them.
    .overwrite((harnesses) => Object.fromEntries(Object.entries(harnesses).filter(isName).slice(0, 64))),
  /** Says how well svc's folders and processes are hidden from runs; left out by devices that do not report it. */
  isolation: z.enum(isolationLevels).optional(),
  /** The device's folders by their short ids, as it found them last; absent: the device does not say. */
  folders: z
    .record(z.string().max(64), folderFacts)
    .refine((folders) => Object.keys(folders).length <= watchedFolders)
    .optional(),
})
export type ProviderReadiness = z.infer<typeof providerReadiness>

/** Says whether the device takes runs, and why not. */
export const claimState = z.object({
  accepting: z.boolean(),
  reason: z.enum(['draining', 'disk_full', 'spool_unavailable', 'capacity', 'paused']).nullable(),
  message: cutText(1_000).nullable(),
  activeRuns: z.number().int().nonnegative(),
})
export type ClaimState = z.infer<typeof claimState>

/** A run the device knows when it connects. `state` is the daemon's; `lastSeq` is the last event it has spooled. */
export const knownRun = z.object({ ...ofRun, state: z.enum(['accepted', 'live', 'ended']), lastSeq: seq })

export const declineReasons = [
  'capacity',
  'draining',
  'disk_full',
  'spool_unavailable',
  'folder_missing',
  'harness_unavailable',
  'already_running',
] as const

/**
 * Tool calls that a person must be asked about. Each is reported at least once: in the header of the frame that holds
 * its event, and in the report of the run's end. The receiver recognises one by (run, `inputDigest`).
 */
const approvals = z.array(askedCall).max(askedCallLimits.calls).optional()

/** The report with which a run ends on the device. */
export const endReport = z.object({
  exitReason: z.enum(exitReasonNames),
  exitCode: z.number().int().nullable(),
  signal: cutText(64).nullable(),
  message: z.string().max(4000).nullable(),
  /** Number of events of this fence, the `ended` event included. */
  eventCount: z.number().int().nonnegative(),
  /** SHA-256 (hex) over all event lines, each with its newline. */
  logHash: cutText(64),
  gapBytes: z.number().int().nonnegative(),
  usage: usageData.nullable(),
  toolCallCount: z.number().int().nonnegative().nullable(),
  sessionId: z.string().max(200).nullable(),
  /** A session that no run can continue: it is gone from the device, or full. */
  lostSessionId: z.string().max(200).optional(),
  harnessVersion: z.string().max(200).nullable(),
  forced: z.boolean(),
  /** The time (ms since 1970) at which the harness's account may be used again, with `rate_limited`, as the harness says. */
  limitResetsAt: z.number().int().positive().optional(),
  /** How much of its limits the account had used, as the harness told it last. */
  limitsUsed: usedLimits.optional(),
  /** The provider failed, by being overloaded or by an error of its own (with `error`). */
  providerFailed: z.boolean().optional(),
  /** The sandbox had no memory left (with `error`). */
  outOfMemory: z.boolean().optional(),
  /** Acts by which the run tried the wall around it. */
  wall: triedActs.optional(),
  /** How long the steps of the run took. */
  spans: deviceSpans.optional(),
  /** The calls about which the run asked. */
  approvals,
})
export type EndReport = z.infer<typeof endReport>

export const deviceMessage = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('hello'),
    protocol: z.number().int(),
    token: z.string().max(200),
    publicId: z.string().max(64),
    /** New for each start of a daemon, to tell a reconnect of the same daemon from a second daemon. */
    instance: z.string().min(8).max(64),
    version: z.string().max(64),
    platform: z.string().max(64),
    hostname: z.string().max(255),
    runs: z.array(knownRun).max(100),
    claimState,
  }),
  z.object({
    type: z.literal('heartbeat'),
    claimState,
    /** Bytes of events that the server has not acknowledged; absent: the device does not say. */
    spoolBytes: z.number().int().nonnegative().optional(),
  }),
  z.object({ type: z.literal('readiness'), providerReadiness, capturedAt: deviceTime }),
  z.object({ type: z.literal('run.accepted'), ...ofRun }),
  z.object({
    type: z.literal('run.declined'),
    ...ofRun,
    reason: z.enum(declineReasons),
    message: z.string().max(1000).nullable(),
  }),
  z.object({ type: z.literal('run.started'), ...ofRun, harnessStartedAt: deviceTime }),
  /** Acts by which the run tried the wall around it; the report of its end says them again. */
  z.object({ type: z.literal('run.wall'), ...ofRun, acts: triedActs }),
  /** Skills of the workspace that the device brought to the run, where that is news, and those that it could not bring. */
  z.object({
    type: z.literal('run.skills'),
    ...ofRun,
    placed: z.array(bundleHash).max(runSkillLimits.skills),
    missed: z.array(z.object({ bundleHash, reason: z.enum(unavailableReasons) })).max(runSkillLimits.skills),
  }),
  z.object({
    type: z.literal('run.ended'),
    ...ofRun,
    report: endReport,
    /** The time since the run ended on the device, by a clock that nobody sets; absent: just now, or the device does not know. */
    endedAgoMs: z.number().int().nonnegative().optional(),
  }),
  /** Asks for what a connection of the run's spec signs in with. The same request may come again while it is waited for. */
  z.object({
    type: z.literal('credential.get'),
    requestId: z.string().max(64),
    ...ofRun,
    connectionId: mcpConnectionId,
    /** The one that the service did not take. */
    refusedVersion: z.number().int().positive().optional(),
    /** The credential is for the variables of the run's environment (`connectionVariables` of the spec), and not for requests. */
    isForEnv: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal('folder.result'),
    requestId: z.string().max(64),
    result: folderCheck,
  }),
])
export type DeviceMessage = z.infer<typeof deviceMessage>

/** The folders that the device watches; absent: the server does not say. */
const folders = z.array(servedFolder).max(watchedFolders).optional()

/** Harnesses whose account has reached its provider's limit, and until when (ms); absent: the server does not say. */
export const accountLimit = z.object({ harness: z.string().max(64), resetsAt: z.number().int().positive() })
const limits = z.array(accountLimit).max(100).optional()

/**
 * The time over which devices that lose the link spread their return. It grows with the number of devices of the
 * server.
 */
const reconnectSpreadMs = z.number().int().nonnegative().max(600_000).optional()

export const serverMessage = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('welcome'),
    deviceId: z.string(),
    displayName: z.string(),
    heartbeatMs: z.number().int().positive(),
    leaseMs: z.number().int().positive(),
    serverTime: unread(z.number().int()),
    capacity: z.number().int().positive(),
    remoteControlRevoked: z.boolean(),
    /**
     * Says what to do with each run of hello: go on from `ackSeq`, start it, give it up, or forget it (its ending is
     * stored).
     */
    runs: z.array(z.object({ ...ofRun, verdict: z.enum(['go_on', 'give_up', 'closed']), ackSeq: seq })),
    /** Set when the token was rotated. The old token works until this one is used. */
    newToken: z.string().nullable(),
    folders,
    limits,
    reconnectSpreadMs,
  }),
  z.object({ type: z.literal('heartbeat.ack'), serverTime: unread(z.number().int()), reconnectSpreadMs }),
  z.object({ type: z.literal('run.offer'), ...ofRun, spec: runSpec, expiresInMs: unread(z.number().int().positive()) }),
  z.object({
    type: z.literal('run.start'),
    ...ofRun,
    /** The run's own token; never written to disk. */
    token: z.string(),
    apiUrl: unread(z.string()),
    /** Secrets for the harness's environment; redacted from all output and never written to disk. */
    secrets: z.record(z.string(), z.string()),
  }),
  z.object({ type: z.literal('run.withdrawn'), ...ofRun, reason: z.string() }),
  z.object({
    type: z.literal('run.cancel'),
    ...ofRun,
    exitReason: z.enum(exitReasonNames),
    reason: z.string().nullable(),
  }),
  z.object({ type: z.literal('run.input'), ...ofRun, inputId: z.string(), text: z.string() }),
  /** The events of this run and fence up to `seq` are stored. */
  z.object({ type: z.literal('ack'), ...ofRun, seq }),
  z.object({ type: z.literal('run.closed'), ...ofRun }),
  /** The fence is old or the run is over: the device ends the harness and keeps nothing. */
  z.object({ type: z.literal('run.refused'), ...ofRun, reason: z.enum(['stale_fence', 'run_ended', 'run_unknown']) }),
  z.object({ type: z.literal('change_set.get'), requestId: z.string(), ...ofRun }),
  z.object({ type: z.literal('credential'), requestId: z.string().max(64), ...ofRun, answer: credentialAnswer }),
  z.object({ type: z.literal('folder.check'), requestId: z.string(), rootPath: z.string() }),
  z.object({ type: z.literal('readiness.get') }),
  z.object({
    type: z.literal('config.changed'),
    displayName: z.string(),
    capacity: z.number().int().positive(),
    remoteControlRevoked: z.boolean(),
    folders,
    limits,
  }),
  z.object({ type: z.literal('revoked'), reason: z.string() }),
])
export type ServerMessage = z.infer<typeof serverMessage>

/** Header of a binary frame with events; the body is their lines. */
export const eventsHeader = z
  .object({
    type: z.literal('run.events'),
    ...ofRun,
    firstSeq: z.number().int().positive(),
    lastSeq: z.number().int().positive(),
    /** The number of events of each kind in the body. */
    kinds: unread(z.record(z.string(), z.number().int().positive())),
    /** The run's totals so far, when the body holds a `usage` event. */
    usage: usageData.optional(),
    sessionId: z.string().max(200).optional(),
    /** The calls asked about by `permission` events in the body. */
    approvals,
    /** SHA-256 (hex) of the body. */
    sha256: z.string().length(64),
  })
  .refine(({ firstSeq, lastSeq }) => lastSeq >= firstSeq && lastSeq - firstSeq < linkLimits.frameEvents, {
    message: 'numbers of events that no frame holds',
  })
export type EventsHeader = z.infer<typeof eventsHeader>

/**
 * Header of a binary frame with a change-set; the body is a `changeSetResult` as JSON. `requestId` is null for a run's
 * final change-set.
 */
export const changeSetHeader = z.object({
  type: z.literal('change_set'),
  ...ofRun,
  requestId: z.string().max(64).nullable(),
})
export const binaryHeader = z.discriminatedUnion('type', [eventsHeader, changeSetHeader])
export type BinaryHeader = z.infer<typeof binaryHeader>
