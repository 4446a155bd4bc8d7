import type { AutomationId, TaskId } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { GithubEvent, SkipReason } from '../../shared/api/automation-fields.ts'
import { ApiError } from '../../shared/api/errors.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Tx } from '../db/open.ts'
import type { WakeContext } from '../run/wakes/wake.ts'
import { outsider, quoted } from '../trust/quote.ts'
import type { Log } from '../process/log.ts'
import { hasFired } from '../resources/automations/fire-store.ts'
import { fire, recordSkip, type FireOutcome } from '../resources/automations/steps/fire.ts'
import { listListening, lockAutomation, type AutomationRow, type Listening } from '../resources/automations/store.ts'
import { listBoundWorkspaces } from '../resources/repos/binding-store.ts'
import { recordActivity } from '../resources/tasks/record.ts'
import { transitionTask } from '../resources/tasks/steps/transition.ts'
import { isFinished, systemActor } from '../resources/tasks/rules.ts'
import { findTaskById, replacePullRequest } from '../resources/tasks/store.ts'
import type { GithubClient } from './client.ts'
import { judgedAs } from './checks.ts'
import { finishDelivery, type DeliveryRow } from './delivery-store.ts'
import { keysIn, type Green, type Merged, type Moved } from './events.ts'
import { listPullsOfCommit, readChecks, readPull, type Pull } from './reads.ts'
import { readChecksOf } from './workflow-checks.ts'
import { listTasksOfPull, type PullFacts } from './task-store.ts'
import { inTransaction } from '../db/transaction.ts'

/**
 * The effects of events at GitHub. Every step may be repeated: finished tasks stay finished, an automation fires
 * once for a merge and once for a head, and what is only told is told in the transaction that finishes its delivery.
 */
export interface EffectOptions {
  root: Knex
  world: World
  log: Log
  /** null: the checks of a commit cannot be read. */
  client: GithubClient | null
  /** The host of repositories' addresses. */
  host: string
  wakeContext: WakeContext
}

type Delivery = Pick<DeliveryRow, 'id' | 'happening'>

export async function follow({ id, happening }: Delivery, options: EffectOptions): Promise<void> {
  if (happening.kind === 'merged') await followMerge(happening, options)
  else if (happening.kind === 'moved') await followMove(id, happening, options)
  else await followGreen(happening, options)
}

type About = Pick<Merged, 'repo' | 'url' | 'branch' | 'keys' | 'isFromOutside'>

/** A pull request from outside is only the task's whose it is already: its words and its branch are anybody's. */
const factsOf = ({ isFromOutside, branch, keys, ...of }: About, host: string): PullFacts => ({
  ...of,
  ...(isFromOutside ? { branch: null, keys: [] } : { branch, keys }),
  remote: `${host}/${of.repo}`,
})

async function followMerge(pull: Merged, options: EffectOptions): Promise<void> {
  const { root, world, host } = options
  // Whoever merged it is of the team.
  const merged = { ...pull, isFromOutside: false }
  await inTransaction(root, async (tx) => {
    for (const { id } of await listTasksOfPull(tx, factsOf(merged, host))) await closeTask(tx, id, { merged, world })
  })
  if (merged.base !== merged.defaultBranch) return
  for (const automation of await listBoundListening(root, { repo: merged.repo, event: 'pull_request.merged' })) {
    const occasion = `merged #${merged.number} ${merged.mergeSha ?? merged.headSha}`
    await fireOne(options, { automation, event: 'pull_request.merged', occasion, pull: merged })
  }
}

/**
 * A merged pull request closes the tasks it names, whichever branch it went into. The task's history shows the branch.
 */
async function closeTask(tx: Tx, id: TaskId, { merged, world }: { merged: Merged; world: World }): Promise<void> {
  // The task is not locked here: the transition locks runs first and then the task.
  const task = await findTaskById(tx, id)
  if (task === null || isFinished(task)) return
  const { number, url } = merged
  const reason = `Pull request #${number} was merged.`
  try {
    await transitionTask(tx, { task, to: 'done', reason, actor: systemActor, world })
  } catch (error) {
    // Somebody finished the task in between.
    if (!(error instanceof ApiError) || error.code !== 'invalid_task_transition') throw error
    return
  }
  await replacePullRequest(tx, id, { pullRequest: { number, url }, at: world.now() })
  const data = { number, url, title: merged.title, base: merged.base }
  await recordActivity(tx, { taskId: id, kind: 'git.pull_request_merged', actor: systemActor, data, world })
}

async function followMove(delivery: string, moved: Moved, { root, world, host }: EffectOptions): Promise<void> {
  const { number, url, title, to } = moved
  await inTransaction(root, async (tx) => {
    // A process that died after the commit, or another replica, has told of it.
    if (!(await finishDelivery(tx, delivery))) return
    for (const { id } of await listTasksOfPull(tx, factsOf(moved, host))) {
      const task = await findTaskById(tx, id, true)
      if (task === null) continue
      const isKnown = task.pullRequest?.url === url
      if (to === 'opened' && !isKnown)
        await replacePullRequest(tx, id, { pullRequest: { number, url }, at: world.now() })
      const data = { number, url, title }
      await recordActivity(tx, { taskId: id, kind: `git.pull_request_${to}`, actor: systemActor, data, world })
    }
  })
}

async function followGreen(green: Green, options: EffectOptions): Promise<void> {
  const { client, root, world, log } = options
  if (client === null) return
  await readChecksOf({ root, world, log, client }, green.repo)
  if (!green.hasPassed) return
  const event = 'pull_request.checks_passed'
  const listening = await listBoundListening(root, { repo: green.repo, event })
  if (listening.length === 0) return
  const numbers = green.numbers.length > 0 ? green.numbers : await listPullsOfCommit(client, green.repo, green.sha)
  for (const number of new Set(numbers)) {
    // The last of a head's many checks needs a request to GitHub, and no other.
    if (await haveFired(root, listening, greenOccasion(number, green.sha))) continue
    const pull = await readPull(client, green.repo, number)
    if (pull?.isOpen !== true) continue
    const named = await tasksOf(pull, green.repo, options)
    const concerned = listening.filter(({ workspaceId }) => named.has(workspaceId))
    if (concerned.length > 0) await judge(client, { green, pull, concerned }, options)
  }
}

/** Automations of one workspace that hear of one event. */
const mostListening = 1_000

/** Leaves out automations of workspaces to which the repository is not bound. */
async function listBoundListening(db: Knex, on: { repo: string; event: GithubEvent }): Promise<Listening[]> {
  const workspaceIds = await listBoundWorkspaces(db, on.repo)
  return workspaceIds.length === 0 ? [] : listListening(db, { ...on, workspaceIds, perWorkspace: mostListening })
}

const greenOccasion = (number: number, sha: string) => `green #${number} ${sha}`

async function haveFired(db: Knex, automations: readonly Listening[], occasion: string): Promise<boolean> {
  for (const { id } of automations) if (!(await hasFired(db, id, occasion))) return false
  return true
}

/** The workspaces with a task that the pull request is about. */
async function tasksOf(pull: Pull, repo: string, { root, host }: EffectOptions): Promise<Set<string>> {
  const tasks = await listTasksOfPull(root, factsOf({ ...pull, repo, keys: keysIn(pull) }, host))
  return new Set(tasks.map((task) => task.workspaceId))
}

async function judge(
  client: GithubClient,
  { green, pull, concerned }: { green: Green; pull: Pull; concerned: readonly Listening[] },
  options: EffectOptions,
): Promise<void> {
  const { repo, sha } = green
  const skipAll = async (reason: SkipReason, about: { occasion: string; message: string }) => {
    for (const { id } of concerned) await skipOne(options, { id, reason, ...about })
  }
  if (pull.headSha !== sha) {
    const message = `Checks passed at ${sha}; #${pull.number} has moved on to ${pull.headSha}.`
    return skipAll('stale_head', { occasion: `stale #${pull.number} ${sha}`, message })
  }
  if ((await readChecks(client, repo, sha)).state !== 'passed') return
  const occasion = greenOccasion(pull.number, sha)
  const judged = await judgedAs(client, repo, pull)
  if (judged !== null) {
    const message =
      judged === 'carried'
        ? `The approval of an earlier head of #${pull.number} holds: only the base branch was merged since.`
        : `#${pull.number} has a verdict at ${sha}.`
    return skipAll(judged, { occasion, message })
  }
  for (const automation of concerned)
    await fireOne(options, {
      automation,
      event: 'pull_request.checks_passed',
      occasion,
      pull: { ...pull, repo, keys: keysIn(pull) },
    })
}

async function skipOne(
  { root, world }: EffectOptions,
  skipped: { id: AutomationId; reason: SkipReason; message: string; occasion: string },
): Promise<void> {
  await inTransaction(root, async (tx) => {
    const automation = await lockAutomation(tx, skipped.id)
    if (automation !== null) await recordSkip(tx, { ...skipped, automation }, world)
  })
}

interface GithubFire {
  automation: Listening
  event: GithubEvent
  occasion: string
  pull: Omit<Merged, 'kind' | 'defaultBranch' | 'mergeSha'>
}

/** The first task of the automation's workspace that the pull request is about. */
async function taskOf(
  tx: Tx,
  { workspaceId }: AutomationRow,
  { pull, host }: { pull: GithubFire['pull']; host: string },
): Promise<TaskId | null> {
  const tasks = await listTasksOfPull(tx, factsOf(pull, host))
  return tasks.find((task) => task.workspaceId === workspaceId)?.id ?? null
}

async function fireOne(options: EffectOptions, { automation: seen, event, occasion, pull }: GithubFire): Promise<void> {
  const { root, log, wakeContext, host } = options
  const fireIt = async (tx: Tx): Promise<FireOutcome | null> => {
    const automation = await lockAutomation(tx, seen.id)
    // The automation was changed since it was listed.
    if (automation?.event !== event || automation.repo !== pull.repo) return null
    const prompt = promptAbout(automation.prompt, event, pull)
    const taskRef = await taskOf(tx, automation, { pull, host })
    const { number, url, title, branch, base, headSha } = pull
    const values = { repo: pull.repo, number, url, title, branch, base, headSha, taskRef }
    const cause = { triggerSource: 'webhook', requestedByRef: null, prompt, occasion, event: values } as const
    return fire(tx, { automation, cause }, wakeContext)
  }
  const outcome = await inTransaction(root, fireIt, { locks: [seen.workspaceId] })
  if (outcome !== null) log.info({ automationId: seen.id, event, occasion, outcome: outcome.kind }, 'automation fired')
}

function promptAbout(prompt: string, event: GithubEvent, pull: GithubFire['pull']): string {
  const { repo, number, url, title, branch, base, headSha } = pull
  const facts = JSON.stringify({ event, repo, number, url, title, branch, base, headSha }, null, 2)
  const told = quoted({ as: 'information', what: 'the pull request', by: outsider, text: facts })
  return `${prompt}\n\nThis automation was fired by a git event.\n\n${told}`
}
