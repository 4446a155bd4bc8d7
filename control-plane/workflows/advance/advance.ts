import type { WorkflowRunId } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import { jsonSchemas } from '../../../shared/api/agent-runs.ts'
import { inOneTrip } from '../../db/one-trip.ts'
import type { Askable, Tx } from '../../db/open.ts'
import { readTogether } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { Log } from '../../process/log.ts'
import type { JobAnswer, JobOwner } from '../../process/worker-pool.ts'
import { findAgent, type AgentRow } from '../../resources/agents/store.ts'
import { isMember } from '../../resources/members/store.ts'
import { listCalls, recordHanded, recordSent, type CallRow } from '../../resources/workflows/call-store.ts'
import {
  findRunToAdvance,
  lockWorkflowRun,
  replaceWorkflowRun,
  takeWorkflowRun,
  type Stall,
  type WorkflowRunRow,
} from '../../resources/workflows/run-store.ts'
import { listEndedSteps } from '../../resources/workflows/step-store.ts'
import { isHalted } from '../../resources/workspaces/rules.ts'
import { findWorkspace, type WorkspaceRow } from '../../resources/workspaces/store.ts'
import type { WakeContext } from '../../run/wakes/wake.ts'
import { callArgs } from '../engine/args.ts'
import type { EnginePool } from '../engine/pool.ts'
import { engineLimits, isStep, type ProgramCall, type ProgramEnd, type Replayed } from '../engine/words.ts'
import { journalCalls, journalOf, outcomesOf, sizeOf, type Journal, type Result } from './journal.ts'
import { dispatchCall } from './dispatch-step.ts'
import type { HandedCalls } from './handed-calls.ts'
import { failureOf, finishWorkflowRun, type WorkflowRunEnding } from './finish.ts'
import type { NewCall } from './new-call.ts'
import { agentIdOf, subjectOf } from './step-subject.ts'
import { stallOf } from './trouble.ts'
import { failed, sizeOfResult, type StepOutcome } from './outcome.ts'

/**
 * An advance of a workflow run goes like this:
 *
 *     read the journal -> run the program with what came since -> write down what it did, in one transaction
 *
 * No lock and no connection is held meanwhile. The transaction begins with the version of the run that was read; when another replica was
 * first, all of it is discarded. So each call is written down, and its run started, exactly once, whoever dies when.
 */
export interface AdvanceDependencies {
  root: Knex
  log: Log
  /** Runs programs; null: the operator turned it off, so that only cancels are done. */
  engine: Pick<EnginePool, 'run'> | null
  /** Checks schemas in a worker: the flaw of the text, or null. */
  findSchemaFlaw: (schemas: string, owner: JobOwner) => Promise<JobAnswer<{ message: string } | null>>
  context: WakeContext
  /** Tells whether the checks of pull requests can be read. */
  readsChecks: () => boolean
  leaseMs: number
  handedCalls: HandedCalls
}

export type Advanced = 'moved' | 'nothing to do' | 'somebody else was first' | 'in trouble'

const resultBytes = 64 * 1024
const journalFull = 'The steps and results of a program take at most 16 MiB.'

const finishOf = ({ context: { world }, leaseMs }: AdvanceDependencies) => ({ world, leaseMs })

export async function advance(id: WorkflowRunId, deps: AdvanceDependencies): Promise<Advanced> {
  const { root, log, engine, handedCalls } = deps
  const known = handedCalls.of(id)
  // The run first: calls that were read before it would be taken for all that it has.
  const [found, others, steps] = await readTogether(root, (db) =>
    inOneTrip(db, [
      () => findRunToAdvance(db, id),
      () => listCalls(db, id, { handedBefore: known.length }),
      () => listEndedSteps(db, id),
    ]),
  )
  const run = found?.run ?? null
  if (run !== null && run.cancelRequestedAt !== null && run.completedAt === null) return cancel(run, deps)
  if (run?.status !== 'running') handedCalls.forget(id)
  if (found === null || run?.status !== 'running' || engine === null) return 'nothing to do'
  // The program's steps would be refused; it goes on when the agents of the workspace are resumed.
  if (isHalted(found.workspace)) return 'nothing to do'
  const calls = journalCalls(id, { known, others }, handedCalls)
  const waiting = calls
    .filter(({ endedAt, handedOrder }) => endedAt !== null && handedOrder === null)
    .toSorted((a, b) => a.endedAt! - b.endedAt! || a.seq - b.seq)
  if (run.replayedAt !== null && waiting.length === 0) return 'nothing to do'
  const results = await outcomesOf(waiting, steps, root)
  const commandSteps = new Set(calls.filter(({ kind }) => kind === 'gate').map(({ seq }) => seq))
  const large = results.find((result) => !commandSteps.has(result.seq) && sizeOfResult(result) > resultBytes)
  if (large !== undefined) return store(run, deps, (tx, locked) => failFor(tx, locked, large, calls, deps))
  const journal = journalOf(run, calls, results)
  if (journal.bytes > engineLimits.journalBytes)
    return store(run, deps, (tx, locked) => finishWorkflowRun(tx, locked, failureOf(journalFull), finishOf(deps)))
  const answer = await replayed(run, { source: found.source ?? '', calls, journal }, engine)
  if (answer.kind === 'gave_up' || answer.value.kind !== 'replayed') {
    const trouble = stallOf(answer, calls)
    log.warn({ workflowRun: id, ...trouble }, 'a workflow did not go on')
    return store(run, deps, (tx, locked) => noteTrouble(tx, locked, { waiting, trouble, deps }), 'in trouble')
  }
  const { value } = answer
  if (value.end !== null) handedCalls.forget(id)
  const { end, log: said } = value
  if (end !== null)
    return store(run, deps, async (tx, locked) => {
      await handOver(tx, locked, { calls, results, at: deps.context.world.now() })
      await finishWorkflowRun(tx, locked, { ...endOf(end), log: [...said] }, finishOf(deps))
    })
  const made = await newCalls(value.calls, { run, calls, deps })
  return goOn(run, { calls, results, made, journal, log: said, deps })
}

/** A person answered so when they were asked about its stall, or the person on whose account it goes has left. */
async function cancel(run: WorkflowRunRow, deps: AdvanceDependencies): Promise<Advanced> {
  const { workspaceId, causedByUuid } = run
  return store(run, deps, async (tx, locked) => {
    const isOfMember = causedByUuid === null || (await isMember(tx, workspaceId, causedByUuid))
    const why = isOfMember ? 'The run was cancelled.' : 'The person who started the workflow has left the workspace.'
    await finishWorkflowRun(tx, locked, failureOf(why), finishOf(deps))
  })
}

type Work = (tx: Tx, run: WorkflowRunRow) => Promise<void>

/** Does the work if the run is as it was read. */
async function store(
  seen: WorkflowRunRow,
  { root }: AdvanceDependencies,
  work: Work,
  done: Advanced = 'moved',
): Promise<Advanced> {
  return inTransaction(
    root,
    async (tx) => {
      const run = await lockWorkflowRun(tx, seen.id)
      if (run === null || run.completedAt !== null || run.version !== seen.version) return 'somebody else was first'
      await work(tx, run)
      return done
    },
    { locks: [seen.workspaceId] },
  )
}

async function replayed(
  run: WorkflowRunRow,
  { source, calls, journal }: { source: string; calls: readonly CallRow[]; journal: Journal },
  engine: Pick<EnginePool, 'run'>,
): Promise<JobAnswer<Replayed>> {
  const { workspaceId, id: seed, createdAt: startedAt } = run
  const { results, bytes: journalBytes } = journal
  const input = JSON.stringify(run.input)
  const known = calls.map(({ digest }) => digest)
  return engine.run(
    'replay',
    { source, input, seed, startedAt, known, journalBytes, results, logsFailures: true },
    { workspaceId, caller: `workflows:${workspaceId}`, bytes: source.length + input.length + journalBytes },
  )
}

/** The calls with their numbers, and the refusal of those whose schema is none. */
async function newCalls(
  made: readonly ProgramCall[],
  { run, calls, deps }: { run: WorkflowRunRow; calls: readonly CallRow[]; deps: AdvanceDependencies },
): Promise<NewCall[]> {
  let stepOrdinal = calls.filter((call) => call.stepOrdinal !== null).length
  const numbered: NewCall[] = []
  for (const [at, call] of made.entries())
    numbered.push({
      ...call,
      seq: calls.length + at,
      stepOrdinal: isStep(call.kind) ? stepOrdinal++ : null,
      refusal: await schemaRefusal(call, run, deps),
    })
  return numbered
}

async function schemaRefusal(
  { kind, args }: ProgramCall,
  { workspaceId }: WorkflowRunRow,
  { findSchemaFlaw }: AdvanceDependencies,
): Promise<StepOutcome | null> {
  if (kind !== 'agent') return null
  const { schema } = callArgs.agent.parse(JSON.parse(args))
  if (schema == null) return null
  const given = jsonSchemas.safeParse({ output: schema })
  if (!given.success) return failed({ code: 'schema_invalid', message: 'The schema of a step takes at most 64 KiB.' })
  const text = JSON.stringify(given.data)
  const answer = await findSchemaFlaw(text, { workspaceId, caller: `workflows:${workspaceId}`, bytes: text.length })
  if (answer.kind === 'done' && answer.value === null) return null
  const why = answer.kind === 'done' ? (answer.value?.message ?? '') : 'it cannot be checked'
  return failed({ code: 'schema_invalid', message: `The schema of this step is none: ${why}.` })
}

interface Handed {
  calls: readonly CallRow[]
  results: readonly Result[]
}

async function handOver(
  tx: Tx,
  { id }: WorkflowRunRow,
  { calls, results, at }: Handed & { at: number },
): Promise<void> {
  const before = calls.filter(({ handedOrder }) => handedOrder !== null).length
  const record =
    ({ seq, isValue, text, ranIn = null }: Result, index: number) =>
    () =>
      recordHanded(tx, { workflowRunId: id, seq }, { isValue, result: text, order: before + index, at, ranIn })
  await inOneTrip(tx, results.map(record))
}

function endOf(end: ProgramEnd): WorkflowRunEnding {
  if (end.kind === 'returned') return { status: 'completed', summary: end.summary }
  const { message, line, column } = end
  return { status: 'failed', summary: message, error: { message, line, column } }
}

interface Step extends Handed {
  made: readonly NewCall[]
  journal: Journal
  log: readonly string[]
  deps: AdvanceDependencies
}

/**
 * Stores what the program did, when it has not ended and its workspace lets its agents work. The first write is that of the run: it
 * takes the run by its version, and holds it until the transaction ends.
 */
async function goOn(run: WorkflowRunRow, { calls, results, made, journal, log, deps }: Step): Promise<Advanced> {
  const { root, context, readsChecks } = deps
  const all: Pick<CallRow, 'seq' | 'kind' | 'args'>[] = [...calls, ...made]
  const move = async (tx: Tx, [workspace, named]: [WorkspaceRow | null, AgentRow | null]): Promise<Advanced> => {
    // The agents were paused while the program ran: its steps would be refused, and it would find them failed.
    if (workspace === null || isHalted(workspace)) throw new Undo('nothing to do')
    const now = context.world.now()
    const changes = {
      log: [...log],
      replayedAt: run.replayedAt ?? now,
      changedAt: now,
      stall: null,
      journalBytes: journal.bytes + sizeOf(made.map(({ args }) => args)),
    }
    let taking = Promise.resolve(false)
    const dispatch = async () => {
      await handOver(tx, run, { calls, results, at: now })
      // Subjects are read one at a time: a program can make a thousand calls, each of another agent with long instructions.
      for (const [at, call] of made.entries()) {
        const subject = await subjectOf(tx, run, { ...call, known: at === 0 ? named : null })
        await dispatchCall(tx, call, { run, workspace, calls: all, subject, context, readsChecks: readsChecks() })
        if (!(await taking)) return
      }
    }
    const [isTaken] = await inOneTrip(tx, [
      () => (taking = takeWorkflowRun(tx, run, changes)),
      () =>
        dispatch().catch(async (error: unknown) => {
          // A failure counts only when the run was taken: otherwise the work was for nothing.
          if (await taking) throw error
        }),
    ])
    if (!isTaken) throw new Undo('somebody else was first')
    return 'moved'
  }
  const agentRef = made[0] === undefined ? null : agentIdOf(run, made[0])
  const ahead = (db: Askable) =>
    inOneTrip(db, [
      () => findWorkspace(db, run.workspaceId),
      () => (agentRef === null ? null : findAgent(db, agentRef)),
    ])
  try {
    return await inTransaction(root, move, { locks: [run.workspaceId], ahead })
  } catch (error) {
    if (error instanceof Undo) return error.outcome
    throw error
  }
}

/** Undoes the transaction, with what it has written already, and says what the advance came to. */
class Undo extends Error {
  readonly outcome: Advanced

  constructor(outcome: Advanced) {
    super(outcome)
    this.outcome = outcome
  }
}

async function failFor(
  tx: Tx,
  run: WorkflowRunRow,
  { seq }: Result,
  calls: readonly CallRow[],
  { context: { world }, leaseMs }: AdvanceDependencies,
): Promise<void> {
  const step = calls.find((call) => call.seq === seq)?.stepOrdinal ?? seq
  const message = `The result of step ${step} takes more than 64 KiB.`
  await finishWorkflowRun(tx, run, failureOf(message), { world, leaseMs })
}

/** A program that cannot even begin is refused; a later trouble is tried again, and waits for a person in the end. */
async function noteTrouble(
  tx: Tx,
  run: WorkflowRunRow,
  { waiting, trouble, deps }: { waiting: readonly CallRow[]; trouble: Stall; deps: AdvanceDependencies },
): Promise<void> {
  const { world } = deps.context
  if (run.replayedAt === null)
    return finishWorkflowRun(tx, run, failureOf(trouble.message), { world, leaseMs: deps.leaseMs })
  const now = world.now()
  for (const { seq, resumeAttempts: attempts } of waiting)
    await recordSent(tx, { workflowRunId: run.id, seq }, { at: now, attempts })
  await replaceWorkflowRun(tx, run, { stall: trouble })
}
