import type { RunId } from '../../../shared/lib/ids.ts'
import { anyId } from '../../../shared/lib/id-schema.ts'
import { z } from 'zod'
import { changeSetResult } from '../../../shared/device/change-set.ts'
import { credentialAnswer } from '../../../shared/device/credential.ts'
import { endReport } from '../../../shared/device/protocol.ts'
import { exitReasonNames } from '../../../shared/runs/exit-reasons.ts'
import { mcpConnectionId } from '../../../shared/runs/mcp-servers.ts'
import { harnessNames } from '../../../shared/runs/harnesses.ts'
import { offeredSkill, unavailableReasons } from '../../../shared/runs/skills.ts'
import { runSpec, type RunSpec } from '../../../shared/runs/spec.ts'
import { triedActs } from '../../../shared/runs/wall-acts.ts'
import { wallSpec } from '../../wall/spec.ts'

// The words of the daemon and a run host to each other: one JSON object per line over the host's unix socket
// (`<state>/hosts/<hostId>.sock`, in a folder only its user may enter). The host listens; a daemon connects, also one
// that was started after the host. A host belongs to the daemon that connected last until that one's process is gone; a
// new connection of the same daemon, or of one that comes after it, replaces the one before.
//
//     daemon                                   run host
//     owner (pid, start time)          ->      (first of all; a host that belongs to another daemon that lives answers
//                                 refused  <-   and closes)
//                                   hello  <-  (at once on each connection; says what it holds)
//     stand_by (wall)                  ->      makes the wall of the run to come, as far as that goes without it
//     skills.ahead (sets)              ->      copies them, before there is a run
//     assign (spec, env)               ->      records the base of the change-set
//                                prepared  <-
//     start (token, secrets)           ->      launches the harness; a second start is ignored
//                                    wall  <-  what was tried of the wall, when it is known
//                                 started  <-
//                                 spooled  <-  rows up to lastSeq are on disk (coalesced)
//                           spool_damaged  <-  the daemon sets the file right, which only it may do
//                              spool_gone  <-  another file or none is at its path; the daemon looks, and makes it anew
//     stop / input / change_set.get    ->
//     shared (runs)                    ->      (again after each connection) names them in its log and its change-set
//                          credential.get  <-  a connection's, which the daemon has from the control plane
//     credential                       ->      kept in memory alone
//                                   ended  <-  the ending is in the spool; the host exits
//     discard                          ->      not started and not wanted any more; the host exits

export const hostRequest = z.discriminatedUnion('type', [
  /** Daemons of the first release do not say who they are. */
  z.object({ type: z.literal('owner'), pid: z.number().int().positive(), startTime: z.string() }),
  /** The wall that a run would be given now. */
  z.object({ type: z.literal('stand_by'), wall: wallSpec }),
  /** Skills of the workspace that the run to come may have, each set as a run would: likely ones first. */
  z.object({
    type: z.literal('skills.ahead'),
    bundles: z.string(),
    sets: z.array(z.object({ harness: z.enum(harnessNames), skills: z.array(offeredSkill) })),
  }),
  z.object({
    type: z.literal('assign'),
    /** Checked whole by the daemon, which started this host, when it came with the offer. */
    spec: z.custom<RunSpec>((spec) => runSpec.shape.runId.safeParse((spec as Partial<RunSpec> | null)?.runId).success),
    fence: z.number().int().positive(),
    /** How long ago the device was given the offer; left out: just now. */
    offeredAgoMs: z.number().nonnegative().optional(),
    /** Skills of the workspace and files of plugins: the folder in which they are kept, and skills that could not be brought there. Left out: the spec has none. */
    skills: z
      .object({
        bundles: z.string(),
        missed: z.array(
          z.object({
            bundleHash: z.string(),
            reason: z.enum(unavailableReasons),
            isDiskFull: z.literal(true).optional(),
          }),
        ),
      })
      .optional(),
    /** The harness's base environment: the person's login shell, cut to the allow-list. */
    env: z.record(z.string(), z.string()),
    homeDir: z.string(),
    loginShell: z.string(),
    /** Folder with a `svc` program, put first on the harness's PATH; null when there is none. */
    svcBinDir: z.string().nullable(),
    harnessVersion: z.string().nullable(),
    /** Says how the wall around the run is made; null: the owner of the device wants none, or there is no way to make one. */
    wall: wallSpec.nullable(),
  }),
  z.object({
    type: z.literal('start'),
    token: z.string(),
    apiUrl: z.string(),
    secrets: z.record(z.string(), z.string()),
    /** Variables of connections that could not be had; absent: there are none. */
    variablesMissed: z.array(z.object({ names: z.array(z.string()), why: z.string() })).optional(),
  }),
  z.object({ type: z.literal('stop'), exitReason: z.enum(exitReasonNames), message: z.string().nullable() }),
  /** All runs that were found to work in the folder at the same time; hosts of the last release ignore it. */
  z.object({ type: z.literal('shared'), runIds: z.array(anyId<RunId>()).readonly() }),
  z.object({ type: z.literal('input'), inputId: z.string(), text: z.string() }),
  z.object({ type: z.literal('change_set.get'), requestId: z.string() }),
  z.object({ type: z.literal('credential'), requestId: z.string(), answer: credentialAnswer }),
  z.object({ type: z.literal('discard') }),
])
export type HostRequest = z.infer<typeof hostRequest>
/** Where the daemon keeps the skills of a run, and those that it could not bring there. */
export type BroughtSkills = NonNullable<Extract<HostRequest, { type: 'assign' }>['skills']>

export const hostPhases = ['idle', 'preparing', 'prepared', 'running', 'ending', 'ended'] as const

export const hostReply = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('hello'),
    hostId: z.string(),
    pid: z.number().int(),
    runId: anyId<RunId>().nullable(),
    fence: z.number().int().nullable(),
    phase: z.enum(hostPhases),
    lastSeq: z.number().int().nonnegative(),
  }),
  /** The daemon with that pid has this host. */
  z.object({ type: z.literal('refused'), owner: z.number().int() }),
  z.object({ type: z.literal('prepared') }),
  /** `pid` is null for a harness that could not be launched; `ended` follows. */
  z.object({ type: z.literal('started'), pid: z.number().int().nullable(), at: z.number().int() }),
  /** Acts by which the wall around the run was tried. */
  z.object({ type: z.literal('wall'), acts: triedActs }),
  z.object({ type: z.literal('spooled'), lastSeq: z.number().int().nonnegative() }),
  z.object({ type: z.literal('spool_damaged'), message: z.string() }),
  z.object({ type: z.literal('spool_gone'), message: z.string() }),
  z.object({ type: z.literal('change_set'), requestId: z.string(), result: changeSetResult }),
  z.object({
    type: z.literal('credential.get'),
    requestId: z.string(),
    connectionId: mcpConnectionId,
    refusedVersion: z.number().int().positive().optional(),
  }),
  z.object({ type: z.literal('ended'), report: endReport }),
])
export type HostReply = z.infer<typeof hostReply>

/** The file `<state>/hosts/<hostId>.json`, by which a later daemon finds the host and tells it from another process with its pid. */
export const hostRecord = z.object({
  hostId: z.string(),
  pid: z.number().int().positive(),
  /** Start time of the process as the system counts it (process/identity.ts). */
  startTime: z.string(),
  bootId: z.string(),
  socket: z.string(),
  /** The folder whose spool it writes; a copy of the folder holds a copy of this record. Hosts of the first release do not say. */
  stateDir: z.string().optional(),
  /** Set once the run's harness is launched; until then the host itself tells its run when it is asked. */
  runId: anyId<RunId>().nullable(),
  fence: z.number().int().nullable(),
  /** The harness's leader, once launched. */
  harness: z.object({ pid: z.number().int(), startTime: z.string() }).nullable(),
  /** First process of the run's namespaces. */
  wall: z.object({ pid: z.number().int(), startTime: z.string() }).nullish(),
})
export type HostRecord = z.infer<typeof hostRecord>
