import { anyId } from '../lib/id-schema.ts'
import type { RunId } from '../lib/ids.ts'
import { asStorable } from '../lib/storable.ts'
import { z } from 'zod'
import { askDetails, askedCallLimits, type AskedCall } from './asked-call.ts'
import { runSkills } from './skills.ts'

// The events of a run, as the run host writes them to the spool and as clients read them. One event is one line of JSON
// in a frame's body: `{"seq":1,"at":1767225600000,"kind":"text","data":{...}}`. `seq` starts at 1 and has no holes
// within one (run, fence); `at` is the device's wall clock in milliseconds, for display only.

/** Output as text when it is valid UTF-8, else as base64, so that no byte is lost. */
export const outputData = z.object({
  text: z.string().optional(),
  base64: z.string().optional(),
})

const totals = {
  inputTokens: z.number().int().nonnegative().optional(),
  outputTokens: z.number().int().nonnegative().optional(),
  cacheReadTokens: z.number().int().nonnegative().optional(),
  cacheWriteTokens: z.number().int().nonnegative().optional(),
  /** Decimal string in US dollars, when the harness reports it. */
  costUsd: z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .overwrite((text) => text.slice(0, 40).replace(/\.$/, ''))
    .optional(),
}
/** The tokens that one run used. The last `usage` event of a run holds the run's totals so far. */
export const usageData = z.object({
  ...totals,
  /** The tokens of the session as the model saw it last. */
  contextTokens: z.number().int().nonnegative().optional(),
  model: z
    .string()
    .overwrite((text) => text.slice(0, 200))
    .optional(),
})

/** The reasons for which the command of a step was not started. */
export const commandRefusals = ['denied', 'cwd_outside', 'cwd_missing'] as const
/** The result of the command of a step; its output is the text of the result event. */
export const commandResult = z.object({
  /**
   * The exit code; null: the command was not started, or did not end by itself. A command that a signal ended has 128 and the signal's
   * number.
   */
  exitCode: z.number().int().nullable(),
  /** The folder in which it ran, without links; null: it was not started. */
  cwd: z.string().overwrite(asStorable).nullable(),
  /** The program and its arguments as they ran; null: the command was not started. */
  ranArgv: z.array(z.string()).nullable(),
  refused: z.enum(commandRefusals).optional(),
})
export type CommandResult = z.infer<typeof commandResult>

export const runEventSchemas = {
  /** The harness was launched. */
  started: z.object({
    harness: z.string(),
    version: z.string().optional(),
    pid: z.number().int().optional(),
    cwd: z.string(),
    argv0: z.string(),
  }),
  /** The skills that the run was given from the folders of its agent; only where the agent names any. */
  skills: runSkills,
  /** The harness named its session; a later run can resume it by this id. */
  session: z.object({ sessionId: z.string(), model: z.string().optional(), resumed: z.boolean().optional() }),
  /** The words of the agent. For the `command` harness: its terminal output as it came. */
  text: outputData.extend({ parentToolCallId: z.string().optional() }),
  thinking: z.object({ text: z.string(), parentToolCallId: z.string().optional() }),
  tool_call: z.object({
    toolCallId: z.string(),
    name: z.string(),
    input: z.unknown(),
    parentToolCallId: z.string().optional(),
  }),
  tool_result: z.object({
    toolCallId: z.string(),
    isError: z.boolean(),
    output: z.string(),
    truncatedBytes: z.number().int().optional(),
    parentToolCallId: z.string().optional(),
  }),
  usage: usageData,
  /**
   * An error that need not end the run. `class` is one of the harness's error classes; `willRetry`: the harness goes on
   * by itself.
   */
  error: z.object({
    class: z.string(),
    message: z.string(),
    httpStatus: z.number().int().optional(),
    willRetry: z.boolean(),
  }),
  /** The outcome the harness itself declared: its final answer. */
  result: z.object({
    text: z.string(),
    isError: z.boolean(),
    truncatedBytes: z.number().int().optional(),
    gate: commandResult.optional(),
  }),
  /** Bytes that no parser understood, kept as they came. */
  raw: outputData.extend({ stream: z.enum(['stdout', 'stderr', 'pty']) }),
  /**
   * A permission decision that the run host took by the agent's lists. `ask` is present when a person is asked, which
   * ends the run. `rule` is `approval:<id>` for a call that a person allowed.
   */
  permission: z.object({
    toolCallId: z.string().optional(),
    name: z.string(),
    decision: z.enum(['allow', 'deny', 'ask']),
    rule: z.string().optional(),
    ask: askDetails.optional(),
  }),
  /** A range of output that was read but not kept; `bytes` counts it. */
  gap: z.object({
    bytes: z.number().int().positive(),
    reason: z.string(),
    /** Number of events that were lost with a damaged spool; `bytes` is then their size in it. */
    events: z.number().int().positive().optional(),
    /** True: nobody can tell how much was lost, or whether more was; `bytes` is then what is known of it, and at least 1. */
    unknown: z.literal(true).optional(),
  }),
  /** Text a person sent to the harness while it ran. */
  input: z.object({ text: z.string() }),
  /** Other runs work in the folder of this one, or in one around or within it: its change-set may hold what they change. */
  folder_shared: z.object({ runIds: z.array(anyId<RunId>()) }),
  /** The last event of every run. */
  ended: z.object({
    exitReason: z.string(),
    exitCode: z.number().int().nullable(),
    signal: z.string().nullable(),
    message: z.string().optional(),
    forced: z.boolean().optional(),
  }),
} as const

export type RunEventKind = keyof typeof runEventSchemas

/** An event before it has a sequence number and a time. */
export type RunEventBody = {
  [K in RunEventKind]: { kind: K; data: z.infer<(typeof runEventSchemas)[K]> }
}[RunEventKind]

/**
 * A kind is the name of a message of a stream, which a line end would cut in two, and whose last message is called `end`. An
 * unknown one from a newer device is passed on as it is.
 */
const eventKind = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/)
  .refine((kind) => kind !== 'end')

/** A line of a frame as a reader parses it. */
export const storedEvent = z.object({
  seq: z.number().int().positive(),
  at: z.number().int(),
  kind: eventKind,
  data: z.record(z.string(), z.unknown()),
})
export type StoredEvent = z.infer<typeof storedEvent>
export type RunUsage = z.infer<typeof usageData>

/** The call that a `permission` event asks a person about; null when it asks nobody. */
export function askedCallOf(permission: z.infer<(typeof runEventSchemas)['permission']>): AskedCall | null {
  const { toolCallId, name, ask } = permission
  const { idChars, nameChars } = askedCallLimits
  return ask ? { toolCallId: toolCallId?.slice(0, idChars) ?? null, name: name.slice(0, nameChars), ...ask } : null
}
