import { findAgent } from '../../resources/agents/store.ts'
import { approvalWakeKey, isAsking } from '../../resources/approvals/rules.ts'
import { listApprovals } from '../../resources/approvals/store.ts'
import { inOneTrip } from '../../db/one-trip.ts'
import type { Db } from '../../db/open.ts'
import { questionWakeKey } from '../../resources/questions/rules.ts'
import { listQuestions } from '../../resources/questions/store.ts'
import { findDetails } from '../../resources/runs/details-store.ts'
import { findFinalAnswer, resultIn, type FinalAnswer } from '../../resources/runs/event-log.ts'
import { stepSchema } from '../../resources/runs/output-schemas.ts'
import type { RunRow } from '../../resources/runs/store.ts'
import type { EndedStep } from '../../resources/workflows/step-store.ts'
import type { WakeAnswer } from '../../run/wakes/wake.ts'
import { findRefusedWake } from '../../run/wakes/wake-store.ts'
import type { AgentArgs, CommandStepArgs } from '../engine/args.ts'
import type { StepFailure } from '../engine/words.ts'

/** The outcome of a step: JSON of its value, or of a failure. */
export interface StepOutcome {
  isValue: boolean
  text: string
  /** The folder in which the command of a command step ran. */
  ranIn?: string | null
}

/** Bytes of the value: of a text those that it has, of everything else those of its JSON. A failure has none. */
export function sizeOfResult({ isValue, text }: StepOutcome): number {
  if (!isValue) return 0
  return Buffer.byteLength(text.startsWith('"') ? (JSON.parse(text) as string) : text)
}

export const failed = (failure: Partial<StepFailure> & Pick<StepFailure, 'code' | 'message'>): StepOutcome => ({
  isValue: false,
  text: JSON.stringify({ exitReason: null, runId: null, ...failure } satisfies StepFailure),
})

/** A wake that was not let through. */
export const refusedWakeOutcome = ({ reason, message }: WakeAnswer & { kind: 'not_dispatched' }): StepOutcome =>
  failed({ code: reason, message })

/** The outcome of an agent step from its runs, oldest first, the last of which has ended. */
export async function agentOutcome(db: Db, steps: readonly EndedStep[], args: AgentArgs): Promise<StepOutcome> {
  const step = steps.at(-1)
  if (step === undefined) return failed({ code: 'run_missing', message: 'The run of this step is gone.' })
  const { run } = step
  const { id: runId, exitReason } = run
  if (isAsking(exitReason)) {
    const nobody = { code: 'unanswered', message: 'The step stopped to ask, and nobody answered in time.' }
    return failed({ ...((await whyNotGoneOn(db, run)) ?? nobody), exitReason, runId })
  }
  if (exitReason !== 'completed') return failureOfRun(run)
  if (args.schema == null) return value((await finalAnswer(db, step))?.text ?? '')
  for (const earlier of steps.toReversed()) {
    const details = await findDetails(db, earlier.run.id)
    if (details?.outputSchema === stepSchema) return value(details.output)
  }
  const message = 'The run recorded no output that fits the schema of this step.'
  return failed({ code: 'output_missing', message, exitReason, runId })
}

/** The value that a command step gives to its program. */
export interface CommandValue {
  exitCode: number | null
  output: string
  ranArgv: string[]
  timedOut: boolean
}

/**
 * The outcome of a command step from its runs, oldest first, the last of which has ended. A command that began has come to a
 * value, whatever its exit status is, and so has one that took too long. A device says whether it began; the command is that of the
 * call, and what a broken device tells is cut.
 */
export async function commandOutcome(
  db: Db,
  steps: readonly EndedStep[],
  { argv }: CommandStepArgs,
): Promise<StepOutcome> {
  const step = steps.at(-1)
  if (step === undefined) return failed({ code: 'run_missing', message: 'The run of this step is gone.' })
  const { run } = step
  const { id: runId, exitReason } = run
  if (isAsking(exitReason)) return failed({ ...(await whyUnapproved(db, run)), exitReason, runId })
  const answer = await finalAnswer(db, step)
  const { ranArgv = null, exitCode = null, cwd = null, refused } = answer?.gate ?? {}
  const timedOut = exitReason === 'timeout'
  if (ranArgv !== null && (timedOut || exitReason === 'completed')) {
    const output = lastBytes(answer?.text ?? '', outputBytes)
    const command = { exitCode, output, ranArgv: argv, timedOut } satisfies CommandValue
    return { ...value(command), ranIn: cwd?.slice(0, 4_096) ?? null }
  }
  if (refused === undefined) return failureOfRun(run)
  const message = run.errorMessage ?? 'The command was not started.'
  return failed({ code: commandRefusalCodes[refused], message, exitReason, runId })
}

const finalAnswer = async (db: Db, { run, lastFrame }: EndedStep): Promise<FinalAnswer | null> =>
  (lastFrame === null ? null : resultIn(lastFrame)) ?? (await findFinalAnswer(db, run))

/** The limit to which a device that works well cuts the output. */
const outputBytes = 64 * 1024

/** The end of a text, without a character that was cut in two. */
function lastBytes(text: string, limit: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= limit) return text
  let start = bytes.length - limit
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return bytes.toString('utf8', start)
}

const commandRefusalCodes = {
  denied: 'gate_denied',
  cwd_outside: 'gate_cwd_outside',
  cwd_missing: 'gate_cwd_missing',
} as const

async function whyUnapproved(
  db: Db,
  { id, workspaceId, agentRef }: RunRow,
): Promise<{ code: string; message: string }> {
  const [approval] = await listApprovals(db, { workspaceId, runId: id, triggers: ['tool_permission'], limit: 1 })
  const by = approval?.reason == null ? '' : ` They said: ${approval.reason}`
  if (approval?.outcome === 'reject' && approval.resolvedType === 'user')
    return { code: 'gate_rejected', message: `A person rejected the command.${by}` }
  const expired = { code: 'gate_expired', message: 'Nobody approved the command in time.' }
  return (await whyNotGoneOn(db, { id, workspaceId, agentRef })) ?? expired
}

/** Returns why nothing went on with a run that stopped to ask, where that is not for want of an answer; else null. */
async function whyNotGoneOn(
  db: Db,
  { id: runId, workspaceId, agentRef }: Pick<RunRow, 'id' | 'workspaceId' | 'agentRef'>,
): Promise<{ code: string; message: string } | null> {
  const about = { workspaceId, runId, limit: mostAsked }
  const [approvals, questions] = await inOneTrip(db, [() => listApprovals(db, about), () => listQuestions(db, about)])
  const keys = [...approvals.map(({ id }) => approvalWakeKey(id)), ...questions.map(({ id }) => questionWakeKey(id))]
  const refused = await findRefusedWake(db, { workspaceId, keys })
  if (refused !== null)
    return { code: refused.reason, message: `The step was answered, and could not go on: ${refused.message}` }
  if ((await findAgent(db, agentRef))?.deletedAt === null) return null
  return { code: 'agent_tombstoned', message: 'The agent of this step was deleted while it waited for a person.' }
}

/** The requests of one run that are looked at, the newest first. */
const mostAsked = 100

const failureOfRun = ({ id: runId, exitReason, errorCode, errorMessage }: RunRow): StepOutcome => {
  const message = errorMessage ?? `The run ended: ${exitReason}.`
  return failed({ code: errorCode ?? exitReason ?? 'error', message, exitReason, runId })
}

const value = (of: unknown): StepOutcome => ({ isValue: true, text: JSON.stringify(of) ?? 'null' })
