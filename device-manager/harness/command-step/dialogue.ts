import { constants } from 'node:os'
import { commandCall } from '../../../shared/permissions/command-call.ts'
import { adviceToModel, ownSvcRule } from '../../../shared/permissions/decide.ts'
import { commandRefusals, type CommandResult } from '../../../shared/runs/events.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { CallDecision, DialogueOutput, HarnessDialogue, HarnessOutcome, ProcessExit } from '../adapter.ts'
import { commandDialogue } from '../command/dialogue.ts'
import { goAhead } from './launch.ts'

const nothing: DialogueOutput = { events: [] }
const askId = 'gate'
/** Paths are at most this long. */
const maxHeadBytes = 64 * 1024

type Stage =
  /** The shell has yet to say where it is; `head` is what it said so far. */
  | { kind: 'starting'; head: Buffer }
  | { kind: 'asking'; cwd: string }
  | { kind: 'running'; cwd: string }
  | { kind: 'refused'; why: NonNullable<CommandResult['refused']>; message: string }

/**
 * Asks about the command before it lets it start; from then on all that comes is its output. The exit status of a command is
 * a result, so the run of one that began has ended well whatever it was.
 *
 *     starting -- told where it is --> asking -- allowed --> running
 *         \---- no such folder -----------\---- denied ----> refused
 */
export function commandStepDialogue(spec: RunSpec): HarnessDialogue {
  const { gate } = spec
  if (gate == null) throw new Error('a run without a command step')
  const command = commandDialogue()
  let stage: Stage = { kind: 'starting', head: Buffer.alloc(0) }

  const refuse = (why: NonNullable<CommandResult['refused']>, message: string): DialogueOutput => {
    stage = { kind: 'refused', why, message }
    return { events: [], endNow: true }
  }

  const begin = (head: Buffer): DialogueOutput => {
    const [word = '', cwd, rest] = fieldsOf(head)
    if (cwd === undefined || rest === undefined) {
      if (head.length > maxHeadBytes) return refuse('cwd_missing', 'The shell of the gate did not say where it is.')
      stage = { kind: 'starting', head }
      return nothing
    }
    const missing = commandRefusals.find((why) => why === word)
    if (missing !== undefined) return refuse(missing, `The folder ${gate.cwd ?? '.'} ${folderTrouble[missing]}.`)
    if (word !== 'ready') return refuse('cwd_missing', 'The shell of the gate did not say where it is.')
    stage = { kind: 'asking', cwd }
    const call = commandCall(gate)
    return {
      events: [{ kind: 'tool_call', data: { toolCallId: askId, ...call } }],
      asks: [{ askId, toolCallId: askId, ...call, cwd }],
    }
  }

  const answer = (decision: CallDecision): DialogueOutput => {
    if (stage.kind !== 'asking') return nothing
    if (decision.behavior === 'deny') return refuse('denied', decision.message.replace(adviceToModel, ''))
    if (gate.needsRule && (decision.rule === null || decision.rule === ownSvcRule)) return refuse('denied', needsRule)
    stage = { kind: 'running', cwd: stage.cwd }
    return { events: [], write: `${goAhead}\n`, closeInput: true }
  }

  return {
    open: () => nothing,
    push(chunk) {
      if (stage.kind === 'running') return command.push(chunk)
      return stage.kind === 'starting' ? begin(Buffer.concat([stage.head, chunk])) : nothing
    },
    pushStderr: (chunk) => command.pushStderr(chunk),
    answer: (id, decision) => (id === askId ? answer(decision) : nothing),
    input: () => nothing,
    end(exit) {
      const { events } = command.end(exit)
      const gateData = resultOf(stage, gate.argv, exit)
      return {
        events: events.map((event) =>
          event.kind === 'result'
            ? { ...event, data: { ...event.data, isError: gateData.exitCode !== 0, gate: gateData } }
            : event,
        ),
      }
    },
    outcome: (exit) => outcomeOf(stage, exit, command),
  }
}

/** The rule that lets an agent call its own `svc` is nobody's word about a command of somebody else. */
const needsRule =
  'The author of the workflow and whoever started it may not both decide what this agent runs, so a rule of the agent must allow the command.'

const folderTrouble = {
  denied: 'is denied',
  cwd_missing: 'cannot be entered',
  cwd_outside: "lies outside of the run's folder",
} as const

/** What stands before, between and after the first two zero bytes. */
function fieldsOf(head: Buffer): string[] {
  return head.toString('utf8').split('\0', 3)
}

function resultOf(stage: Stage, argv: readonly string[], exit: ProcessExit | undefined): CommandResult {
  if (stage.kind === 'refused') return { exitCode: null, cwd: null, ranArgv: null, refused: stage.why }
  if (stage.kind !== 'running') return { exitCode: null, cwd: null, ranArgv: null }
  return { exitCode: statusOf(exit), cwd: stage.cwd, ranArgv: [...argv] }
}

/** As a shell tells it; null: it did not end by itself. */
function statusOf(exit: ProcessExit | undefined): number | null {
  if (exit === undefined || exit.stoppedFor !== null) return null
  if (exit.signal === null) return exit.exitCode
  return 128 + ((constants.signals as Readonly<Record<string, number>>)[exit.signal] ?? 0)
}

function outcomeOf(stage: Stage, exit: ProcessExit, command: HarnessDialogue): HarnessOutcome {
  const ended = { sessionId: null, resumeRefused: false }
  if (exit.stoppedFor !== null) return command.outcome(exit)
  if (stage.kind === 'running') return { ...ended, exitReason: 'completed', message: null }
  if (stage.kind === 'refused') return { ...ended, exitReason: 'error', message: stage.message }
  return {
    ...ended,
    exitReason: 'harness_start_failed',
    message: 'The shell of the gate ended before its command began.',
  }
}
