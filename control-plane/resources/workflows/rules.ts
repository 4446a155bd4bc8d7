import type { AgentRef, PersonUuid } from '../../../shared/lib/ids.ts'
import type { WorkflowInput } from './store.ts'
import type { CallRow, CheckRow } from './call-store.ts'
import type { StepState } from '../../../shared/api/workflow-words.ts'
import { hasRole, type Caller, publicIdOf } from '../../http/callers.ts'
import type { Role } from '../members/store.ts'
import type { QuestionRow } from '../questions/store.ts'
import type { WorkflowRunRow } from './run-store.ts'

// Decisions about workflows.

/** An agent changes and retires only what it wrote; people are trusted with all of their workspace. */
export const mayChangeWorkflow = ({ authorAgentRef }: { authorAgentRef: AgentRef | null }, caller: Caller): boolean =>
  caller.kind === 'person' || caller.agentRef === authorAgentRef

/** A member of the workspace who says what a command step runs; null: an agent, or somebody who left. */
export type CommandAuthor = { personUuid: PersonUuid; role: Role } | null

/** The owner of the agent and workspace admins decide which programs it runs. */
export const mayDecideProgram = (speaker: CommandAuthor, { ownerUuid }: { ownerUuid: PersonUuid | null }): boolean =>
  speaker !== null && (speaker.role !== 'member' || speaker.personUuid === ownerUuid)

/** Whoever started it may, and workspace admins. */
export function mayCancelWorkflowRun(run: Pick<WorkflowRunRow, 'startedByRef'>, caller: Caller): boolean {
  return hasRole(caller, 'admin') || run.startedByRef === publicIdOf(caller)
}

/** Journals of one page of runs together. */
const pageChars = 8 * 1024 * 1024
/** About what reading a call with its run costs beside its text. */
const charsPerCall = 2 * 1024

/**
 * Returns how many of these runs one page shows, at least one: journals are large, and their steps are read from them with a run for each.
 * `callsOf`: the number of calls of each run.
 */
export function fittingRuns(
  runs: readonly Pick<WorkflowRunRow, 'id' | 'journalBytes'>[],
  callsOf: ReadonlyMap<string, number>,
): number {
  let chars = 0
  const costOf = ({ id, journalBytes }: (typeof runs)[number]) => journalBytes + (callsOf.get(id) ?? 0) * charsPerCall
  const over = runs.findIndex((run, at) => (chars += costOf(run)) > pageChars && at > 0)
  return over === -1 ? runs.length : over
}

/** The state follows from the times of the call. */
export function stepStateOf({
  endedAt,
  resumedAt,
  advancedAt,
}: Pick<CallRow, 'endedAt' | 'resumedAt' | 'advancedAt'>): StepState {
  if (advancedAt !== null) return 'done'
  if (endedAt === null) return 'dispatched'
  return resumedAt === null ? 'waiting' : 'resumed'
}

/**
 * The person behind what a workflow run does: the one who started it, if the program is theirs or nobody's. What two people
 * said together is no single one's wake.
 */
export const causeOfRun = (
  starter: PersonUuid | null,
  author: PersonUuid | null,
  isBuiltIn: boolean,
): PersonUuid | null => (isBuiltIn || starter === author ? starter : null)

/** The options that an answer chose; words in the thread may name one by its key or label. */
export function chosenKeys(
  { options }: Pick<QuestionRow, 'options'>,
  answer: { text: string | null; selected: readonly string[] | null } | null,
): string[] {
  if (answer?.selected != null && answer.selected.length > 0) return [...answer.selected]
  const said = answer?.text?.trim().toLowerCase() ?? ''
  return (options ?? [])
    .filter(({ key, label }) => [key, label].some((word) => word.toLowerCase() === said))
    .map(({ key }) => key)
}

/** Returns the value of `ask`: the text; with options the key that was chosen, or all of them; words that name none stay words. */
export function valueOfAnswer(
  question: Pick<QuestionRow, 'answerMode' | 'options'>,
  answer: { text: string | null; selected: readonly string[] | null } | null,
): string | string[] | null {
  const text = answer?.text ?? null
  if (question.answerMode === 'free_text') return text
  const keys = chosenKeys(question, answer)
  if (question.answerMode === 'multi_select') return keys.length > 0 ? keys : text === null ? [] : [text]
  return keys[0] ?? text
}

/** Returns the outcome of the checks; null: some are pending, or there are none yet. */
export function checksStateOf(checks: readonly Pick<CheckRow, 'status'>[]): 'passed' | 'failed' | null {
  if (checks.length === 0 || checks.some(({ status }) => status === 'pending')) return null
  return checks.some(({ status }) => status === 'failed') ? 'failed' : 'passed'
}

const minute = 60_000
/** A result is sent again 2, 4 and 6 minutes after its end; a run that did not go on by 8 minutes has stalled. */
export const resendMs = 2 * minute
export const resends = 3

/** Decides what is done about a result that was sent and did not reach the program. `since`: its end, or the last retry. */
export function nextForUnmoved({
  since,
  attempts,
  now,
}: {
  since: number
  attempts: number
  now: number
}): 'wait' | 'resend' | 'stall' {
  if (now < since + resendMs * (attempts + 1)) return 'wait'
  return attempts < resends ? 'resend' : 'stall'
}

export type InputProblem = { key: string; message: string }

/** The value of an input as the program gets it, before tasks and agents are looked up; or what is wrong with it. */
export function readInput(input: WorkflowInput, given: unknown): { value: unknown } | InputProblem {
  const { key, kind } = input
  if (given === null || given === undefined || given === '')
    return input.required ? { key, message: 'is required' } : { value: null }
  switch (kind) {
    case 'text':
      if (typeof given !== 'string') return { key, message: 'must be a text' }
      return given.length > maxTextChars ? { key, message: 'is too long' } : { value: given }
    case 'number': {
      // Blanks alone would be a zero.
      const value = typeof given === 'string' ? (given.trim() === '' ? NaN : Number(given)) : given
      if (typeof value !== 'number' || !Number.isFinite(value)) return { key, message: 'must be a number' }
      return { value }
    }
    case 'boolean': {
      const value = given === 'true' ? true : given === 'false' ? false : given
      return typeof value === 'boolean' ? { value } : { key, message: 'must be true or false' }
    }
    default:
      if (typeof given !== 'string' || given.length > 200)
        return { key, message: `must name ${kind === 'task' ? 'a task' : 'an agent'}` }
      return { value: given }
  }
}

const maxTextChars = 100_000
