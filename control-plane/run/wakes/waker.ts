import { idFrom, type ConversationId, type TaskId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../../shared/lib/world.ts'
import { inPages } from '../../db/table.ts'
import type { Tx } from '../../db/open.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { Bus } from '../../db/bus.ts'
import type { Log } from '../../process/log.ts'
import { findAgent } from '../../resources/agents/store.ts'
import { approvalOfWake } from '../../resources/approvals/rules.ts'
import { runtimeOf } from '../../resources/conversations/runtime.ts'
import { claimConversation } from '../../resources/conversations/store.ts'
import { listLiveOfAgent, listLiveOfConversation } from '../../resources/runs/live-store.ts'
import { findDetails } from '../../resources/runs/details-store.ts'
import { findRun, lockRun, type RunRow, type RunStep } from '../../resources/runs/store.ts'
import { findTaskById } from '../../resources/tasks/store.ts'
import type { WakeOrigin } from '../../trust/askers.ts'
import { otherWords } from '../../trust/rules.ts'
import { listHolding } from '../placement/refused-runs.ts'
import { KeyedQueue } from '../../process/keyed-queue.ts'
import { afterFailure, asBefore, isSuccessorWake } from './successors.ts'
import type { CommandStep } from './build-spec.ts'
import { startRun } from './start-run.ts'
import { SharedRoom } from '../offers/offer.ts'
import type { WakeAnswer, WakeContext } from './wake.ts'
import {
  answerWakes,
  claimConversationWakes,
  claimWake,
  claimWakesOfRun,
  findWake,
  listWaitingWakes,
  listWakesToTake,
  type ListedWake,
  type WakeRow,
} from './wake-store.ts'

export interface WakerOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  context: WakeContext
}

/** Wakes read at once. */
const batch = 500
/** Wakes that become runs in one transaction: more of them would hold up the other writes of a SQLite database. */
const together = 16
const failed = 'a wake failed; the sweep tries again'
/** The key of what only finds wakes, and queues them under the keys of their workspaces in their order. */
const finderKey = 'looks'
/** Prompts that become one run are together at most this long, as the prompt of a run; what is beyond waits for the next. */
const maxPromptChars = 1_000_000
const separator = '\n\n'
/** Prompts that are read for one run. */
const mostMerged = 50

/**
 * Makes runs of the wakes that were asked for within other changes (wakes.ts). Each replica hears of each wake; the one
 * that claims its row makes the run, in the same transaction. In a conversation one run of an agent follows another: what
 * is said while it works waits, and becomes one run together. So do the answers to what one run has asked. Wakes of one
 * workspace are made into runs in their order, some of them in one transaction, and wait for none of another workspace.
 */
export class Waker {
  private readonly options: WakerOptions
  private readonly unsubscribe: (() => void)[] = []
  private readonly work: KeyedQueue
  /** Wakes that were asked for since the last look. */
  private readonly asked = new Set<string>()
  /** The ones of them that are to be taken, in their order, by workspace. */
  private readonly found = new Map<WorkspaceUuid, Map<string, ListedWake>>()

  constructor(options: WakerOptions) {
    this.options = options
    this.work = new KeyedQueue(options.log, failed)
  }

  start(): void {
    if (!this.work.isStopped) return
    this.work.start()
    const { bus } = this.options
    this.unsubscribe.push(
      bus.on('wake.requested', (row) => {
        this.asked.add(row.key)
        this.work.add(finderKey, () => this.queueAsked(), 'asked')
      }),
      bus.on('run.ended', (row) => {
        const { conversationId } = row.payload
        const ended = {
          runId: row.key,
          conversationId: typeof conversationId === 'string' ? idFrom<ConversationId>(conversationId) : null,
        }
        this.work.add(finderKey, () => this.takeWaiting({ ended }))
      }),
    )
  }

  async stop(): Promise<void> {
    for (const off of this.unsubscribe.splice(0)) off()
    await this.work.stop()
    this.asked.clear()
    this.found.clear()
  }

  /** Catches what an event missed, soon. */
  queueWaiting(): void {
    this.work.add(finderKey, () => this.takeWaiting({}), 'all')
  }

  /** Queues what events missed, and resolves when it is done. */
  async sweep(): Promise<void> {
    this.queueWaiting()
    await this.work.idle()
  }

  /** Resolves when nothing that was asked for is still being done. */
  async idle(): Promise<void> {
    await this.work.idle()
  }

  private async queueAsked(): Promise<void> {
    const ids = [...this.asked]
    this.asked.clear()
    for (let at = 0; at < ids.length; at += batch)
      for (const wake of await listWakesToTake(this.options.root, ids.slice(at, at + batch))) this.wakeSoon(wake)
  }

  private wakeSoon(wake: ListedWake): void {
    const { id, workspaceId } = wake
    const found = this.found.get(workspaceId) ?? new Map<string, ListedWake>()
    this.found.set(workspaceId, found)
    if (!found.has(id)) found.set(id, wake)
    this.work.add(workspaceId, () => this.wakeNext(workspaceId), 'wakes')
  }

  /** Queues all wakes that wait: those that wait on, and those that fail, hold up none of the others. */
  private async takeWaiting(filter: Pick<Parameters<typeof listWaitingWakes>[1], 'ended'>): Promise<void> {
    const { root } = this.options
    for await (const page of inPages<ListedWake>(batch, (next) => listWaitingWakes(root, { ...filter, ...next }))) {
      for (const wake of page) this.wakeSoon(wake)
      if (this.work.isStopped) return
    }
  }

  /** Takes the next wakes of the workspace in their order: as many as can be made into runs together, or one. */
  private async wakeNext(workspaceId: WorkspaceUuid): Promise<void> {
    const found = this.found.get(workspaceId) ?? new Map<string, ListedWake>()
    const next = leadingTogether([...found.values()])
    for (const id of next) found.delete(id)
    if (found.size === 0) this.found.delete(workspaceId)
    else this.work.add(workspaceId, () => this.wakeNext(workspaceId), 'wakes')
    try {
      await this.wake(next, workspaceId)
    } catch (error) {
      if (next.length === 1) throw error
      // A wake that cannot be made into a run holds up none of the others.
      this.options.log.warn({ err: error, wakes: next.length }, 'wakes were not taken together; each is by itself')
      for (const id of next) await this.wakeAlone(id, workspaceId)
    }
  }

  private async wakeAlone(id: string, workspaceId: WorkspaceUuid): Promise<void> {
    try {
      await this.wake([id], workspaceId)
    } catch (error) {
      this.options.log.error({ err: error, line: workspaceId, key: id }, failed)
    }
  }

  private async wake(ids: readonly string[], workspaceId: WorkspaceUuid): Promise<void> {
    const { root, log, context } = this.options
    const work = async (tx: Tx) => {
      const room = new SharedRoom()
      const answers = new Map<string, WakeAnswer | null>()
      for (const id of ids) answers.set(id, await this.makeRun(tx, id, { ...context, room }))
      return answers
    }
    for (const [id, answer] of await inTransaction(root, work, { locks: [workspaceId] }))
      if (answer !== null)
        log.info({ wake: id, ...('runId' in answer && { runId: answer.runId }), kind: answer.kind }, 'wake answered')
  }

  /** Makes the run of a wake; null: the wake waits on, or is no longer there to be taken. */
  private async makeRun(tx: Tx, id: string, context: WakeContext): Promise<WakeAnswer | null> {
    const asked = await findWake(tx, id)
    const conversationId = asked?.conversationId ?? null
    // The conversation is locked before its wakes: those of one conversation are taken one after another, and so are turns that people
    // send, which have none.
    const conversation = conversationId === null ? null : await claimConversation(tx, conversationId)
    const parentRunId = asked?.parentRunId ?? null
    // The run that they go on with is locked only outside of a conversation: an ending locks its run before the conversation.
    const ownParent =
      parentRunId === null ? null : await (conversation === null ? lockRun(tx, parentRunId) : findRun(tx, parentRunId))
    const claimed = await claimWake(tx, id)
    if (claimed === null) return null
    if (ownParent !== null && (await isAtWork(tx, ownParent))) return null
    const agent = await findAgent(tx, claimed.agentRef)
    const wakes = await this.claimMerged(tx, claimed)
    if (wakes === null) return null
    // The wake itself may be missing among many, of which only the first ones are taken.
    const first = wakes.find((wake) => wake.id === id) ?? wakes[0] ?? claimed
    const leading = leadingOf(wakes, first)
    const parent = leading.id === id ? ownParent : await parentOf(tx, leading)
    if (parent !== ownParent && parent !== null && (await isAtWork(tx, parent))) return null
    const answer: WakeAnswer =
      agent === null
        ? { kind: 'not_dispatched', reason: 'agent_tombstoned', message: 'The agent is gone.' }
        : await startRun(
            tx,
            {
              agent,
              triggerSource: first.triggerSource,
              requestedByRef: first.requestedByRef,
              ...askedByAll(wakes),
              prompt: wakes.map((wake) => wake.prompt).join(separator),
              parent,
              task: first.taskId === null ? null : await findTaskById(tx, first.taskId),
              conversationId,
              ...runtimeOf(conversation),
              step: parent === null ? null : stepOf(parent),
              commandStep: parent === null ? null : await commandStepOf(tx, parent),
              allowCalls: wakes.flatMap((wake) => wake.allowCalls),
              tells: wakes.flatMap(({ key }) => approvalOfWake(key) ?? []),
              ...asBefore(leading.key, { parent, agent }),
              ...(await afterFailure(tx, leading.key, parent)),
            },
            context,
          )
    const done = wakes.filter((wake) => !mustWait(wake, answer)).map((wake) => wake.id)
    await answerWakes(tx, { ids: done, answer, at: this.options.world.now() })
    return done.length === 0 ? null : answer
  }

  /** The wakes that become one run with this one; null: a run of the agent in the conversation is still at work. */
  private async claimMerged(tx: Tx, wake: WakeRow): Promise<WakeRow[] | null> {
    const { agentRef, conversationId, taskId, parentRunId } = wake
    if (conversationId === null)
      return parentRunId === null ? [wake] : claimWakesOfRun(tx, { agentRef, taskId, parentRunId })
    const { world, offers } = this.options.context
    const isAtWork = async () => {
      const live = await listLiveOfConversation(tx, { agentRef, conversationId })
      return (await listHolding(tx, live, { now: world.now(), leaseMs: offers.leaseMs })).length > 0
    }
    // The agent is asked about before the wakes are read: while it works, each new wake would read all that wait.
    if (await isAtWork()) return null
    const waiting = await claimConversationWakes(tx, { agentRef, conversationId, taskId, limit: mostMerged })
    // The agent is asked about again after the wakes are locked, or two replicas could each start a run.
    return (await isAtWork()) ? null : fitting(waiting)
  }
}

/**
 * Returns the ids of the first wakes that become runs in one transaction. One of a conversation, or that goes on with a run, is taken by
 * itself: it locks that before it locks the room of the workspace, as everybody does. Of a task there is one, so that the time at which its runs
 * were made tells their order.
 */
function leadingTogether(wakes: readonly ListedWake[]): string[] {
  const isPlain = ({ conversationId, parentRunId }: ListedWake) => conversationId === null && parentRunId === null
  const tasks = new Set<TaskId>()
  const ends = wakes.slice(0, together).findIndex((wake, at) => {
    if (at > 0 && (!isPlain(wake) || !isPlain(wakes[at - 1]!))) return true
    if (wake.taskId === null) return false
    return tasks.size === tasks.add(wake.taskId).size
  })
  return wakes.slice(0, ends === -1 ? together : ends).map(({ id }) => id)
}

/**
 * The wake whose session, choices and place in the line they all get, in whatever order they came: what follows a limit or
 * a failure goes on as that run did, and what goes on with a run goes on with its session.
 */
function leadingOf(wakes: readonly WakeRow[], first: WakeRow): WakeRow {
  if (isSuccessorWake(first)) return first
  return wakes.find(isSuccessorWake) ?? [first, ...wakes].find(({ parentRunId }) => parentRunId !== null) ?? first
}

const parentOf = async (tx: Tx, { parentRunId }: WakeRow): Promise<RunRow | null> =>
  parentRunId === null ? null : findRun(tx, parentRunId)

/** A run that goes on with a step of a workflow does that step. */
const stepOf = ({ workflowRunId, workflowCall: call }: RunRow): RunStep | null =>
  workflowRunId === null || call === null ? null : { workflowRunId, call }

/** An answer about the command of a gate lets this command start, and wakes no agent. */
async function commandStepOf(tx: Tx, { id, workflowRunId }: RunRow): Promise<CommandStep | null> {
  if (workflowRunId === null) return null
  const { gate = null, limits } = (await findDetails(tx, id))?.spec ?? {}
  return gate === null || limits === undefined ? null : { command: gate, timeoutMs: limits.runMs }
}

/**
 * Returns the one person who asked for all of the wakes, or nobody: words of several people are no single one's wake. The run follows the
 * words of all of them.
 */
function askedByAll(wakes: readonly WakeRow[]): Pick<WakeOrigin, 'causedByUuid' | 'wordsBy'> {
  const causes = new Set(wakes.map((wake) => wake.causedByUuid))
  const causedByUuid = causes.size === 1 ? [...causes][0]! : null
  return {
    causedByUuid,
    wordsBy: otherWords(
      causedByUuid,
      wakes.flatMap((wake) => [wake.causedByUuid, ...wake.wordsBy]),
    ),
  }
}

/** Returns as many of the first wakes as one prompt holds. */
function fitting(wakes: readonly WakeRow[]): WakeRow[] {
  let chars = 0
  return wakes.filter(({ prompt }, at) => {
    chars += prompt.length + separator.length
    return at === 0 || chars <= maxPromptChars
  })
}

/**
 * True when a harness may hold the session of this run: it has not ended, or a run continues it. The end of that run
 * brings the wake back.
 */
async function isAtWork(tx: Tx, run: RunRow): Promise<boolean> {
  if (run.endedAt === null) return true
  for (const live of await listLiveOfAgent(tx, run.agentRef)) {
    // The run that is started ends it.
    if (live.compacts) continue
    if (live.parentRunId === run.id) return true
    if (run.sessionId === null) continue
    const before = live.sessionId ?? (live.parentRunId && (await findRun(tx, live.parentRunId))?.sessionId)
    if (before === run.sessionId) return true
  }
  return false
}

/**
 * A person's answer is not dropped because the task waits for another one: whoever gives that one wakes the agent that asked
 * for it, and nobody else.
 */
const mustWait = (wake: WakeRow, answer: WakeAnswer): boolean =>
  wake.triggerSource === 'approval_resolved' && answer.kind === 'not_dispatched' && answer.reason === 'task_hitl_open'
