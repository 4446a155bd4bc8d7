import type { RepoUuid } from '../../../shared/lib/ids.ts'
import { findFolder, findFolderByRepo, type FolderRow } from '../../resources/folders/store.ts'
import type { Tx, Db } from '../../db/open.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import { spentBudgetOf } from '../../resources/agents/budget.ts'
import { hasOnlyHeldTasks } from '../../resources/approvals/held-tasks-store.ts'
import { cloudRepoOf, type CloudRepo } from './cloud-repo.ts'
import { findDetails } from '../../resources/runs/details-store.ts'
import { isToBeCancelled } from '../../resources/runs/cancellation-store.ts'
import { listLiveOfAgent } from '../../resources/runs/live-store.ts'
import type { RunRow, RunStep } from '../../resources/runs/store.ts'
import { connectionsOfAgent, type AgentConnection } from '../../resources/connections/agent-connections.ts'
import { mcpServersOfAgent } from '../../resources/connections/joined-servers.ts'
import { findWorkspace, type WorkspaceRow } from '../../resources/workspaces/store.ts'
import { openHoldsOfTasks } from '../../resources/approvals/open-holds.ts'
import type { Person } from '../../trust/rules.ts'
import { startsLater } from '../../resources/tasks/rules.ts'
import { hasOpenBlocker } from '../../resources/tasks/store.ts'
import { admit, type Admission, type TaskFacts, type WakeFacts } from './admission.ts'
import type { RunOverrides } from './build-spec.ts'
import { withoutNews } from './decided-changes.ts'
import { placeOfEnvironment } from '../places/places.ts'
import { isOver } from './finished-task.ts'
import type { ReadyWake, WakeContext, WakeTask } from './wake.ts'

/** A wake, with what it is about. */
export interface ResolvedWake {
  wake: ReadyWake
  workspace: WorkspaceRow
  task: WakeTask | null
  /** The wake's settings, before those of the task. */
  overrides: RunOverrides
  environment: 'device' | 'cloud'
  folder: FolderRow | null
  /** The repository that a cloud run works on; null: it has none, or is no run of the cloud. */
  repo: CloudRepo | null
  /** MCP servers of the agent, of the workspace and of connections. */
  mcpServers: Readonly<Record<string, unknown>>
  /** Connections from which runs of the agent get variables. */
  connections: readonly AgentConnection[]
  /** The time of the wake (ms). */
  at: number
}

/** Resolves what the wake is about; null: the workspace is gone. */
export async function resolveWake(
  tx: Tx,
  wake: ReadyWake,
  { world, services }: Pick<WakeContext, 'world' | 'services'>,
): Promise<ResolvedWake | null> {
  const at = world.now()
  const { agent, task = null } = wake
  const workspace = wake.workspace ?? (await findWorkspace(tx, agent.workspaceId))
  if (workspace === null) return null
  const overrides = { ...overridesOf(task), ...withoutNulls(wake.overrides ?? {}) }
  const environment = overrides.environment ?? agent.environment
  const { hasFolders } = placeOfEnvironment(environment)
  const folder = hasFolders ? await folderFor(tx, wake, { workspace, task }) : null
  const repo = hasFolders ? null : await cloudRepoOf(tx, agent, task)
  const { given: connections } = await connectionsOfAgent(tx, agent, { services, now: at })
  const mcpServers = await mcpServersOfAgent(tx, agent, { workspace, connections })
  return { wake, workspace, task, overrides, environment, folder, repo, mcpServers, connections, at }
}

/** Reads what admission depends on, and asks it. */
export async function admissionOf(
  tx: Tx,
  { wake, workspace, task, environment, folder, at: now }: ResolvedWake,
  { cloudEnabled }: Pick<WakeContext, 'cloudEnabled'>,
): Promise<Admission> {
  const { agent, triggerSource, step } = wake
  const { hasFolders } = placeOfEnvironment(environment)
  const same = await findSameQueued(tx, wake)
  return admit({
    agent,
    workspace,
    environment,
    folder: folderFact(folder, { agent, task, hasFolders }),
    cloudEnabled,
    spentBudget: await spentBudgetOf(tx, { agent, workspace, now }),
    task: task && (await loadTaskFacts(tx, task, { agent, triggerSource, now, step: step ?? null })),
    isTimerInVain: triggerSource === 'cron' && !wake.compacts && task === null && (await hasOnlyHeldTasks(tx, agent)),
    isUnwantedHook: triggerSource === 'webhook' && !agent.wakeOnHook,
    sameQueuedRunId: same?.id ?? null,
  })
}

/**
 * Tells what would become of a wake of the agent for its task now. It reads the same facts and asks the same rules as a wake does, and
 * makes none.
 */
export async function admissionForTask(
  db: Db,
  { agent, task, workspace }: { agent: AgentRow; task: WakeTask; workspace: WorkspaceRow },
  { cloudEnabled, now }: { cloudEnabled: boolean; now: number },
): Promise<{ admission: Admission; spentBudget: WakeFacts['spentBudget'] }> {
  const environment = task.environment ?? agent.environment
  const { hasFolders } = placeOfEnvironment(environment)
  const folder = hasFolders ? await folderOf(db, { agent, workspace, task }) : null
  const spentBudget = await spentBudgetOf(db, { agent, workspace, now })
  const admission = admit({
    agent,
    workspace,
    environment,
    folder: folderFact(folder, { agent, task, hasFolders }),
    cloudEnabled,
    spentBudget,
    task: await loadTaskFacts(db, task, { agent, triggerSource: 'assignment', now, step: null }),
    isTimerInVain: false,
    isUnwantedHook: false,
    sameQueuedRunId: null,
  })
  return { admission, spentBudget }
}

/** Whether the folder that the agent is to work in can be used; null: it has none, or the task brings its own. */
function folderFact(
  folder: FolderRow | null,
  { agent, task, hasFolders }: { agent: AgentRow; task: WakeTask | null; hasFolders: boolean },
): WakeFacts['folder'] {
  if (!hasFolders || agent.defaultFolderId === null || task?.repoId) return null
  return folder ? 'bound' : 'missing'
}

const folderFor = (tx: Tx, wake: ReadyWake, of: { workspace: WorkspaceRow; task: WakeTask | null }) =>
  wake.compacts ? folderOfSession(tx, wake) : folderOf(tx, { agent: wake.agent, ...of })

const folderOfSession = async (tx: Tx, { agent, parent }: ReadyWake): Promise<FolderRow | null> =>
  parent?.folderId == null ? null : findFolder(tx, agent.workspaceId, parent.folderId)

/** The folder the run starts in. The folder of the task's repo takes precedence over the agent's own. */
async function folderOf(
  db: Db,
  { agent, workspace, task }: { agent: AgentRow; workspace: WorkspaceRow; task: WakeTask | null },
): Promise<FolderRow | null> {
  const ofRepo = (repoId: RepoUuid | null) =>
    workspace.defaultDevice === null || repoId === null ? null : findFolderByRepo(db, workspace.defaultDevice, repoId)
  const ofTask = await ofRepo(task?.repoId ?? null)
  if (ofTask) return ofTask
  if (agent.defaultFolderId !== null) return findFolder(db, agent.workspaceId, agent.defaultFolderId)
  return ofRepo(agent.defaultRepoId)
}

/**
 * A wake by assignment or mention that adds nothing to one still waiting is folded into it; a person's own wake never is.
 */
async function findSameQueued(tx: Tx, wake: ReadyWake): Promise<RunRow | null> {
  if (wake.triggerSource !== 'assignment' && wake.triggerSource !== 'mention') return null
  const taskId = wake.task?.id ?? null
  for (const run of await listLiveOfAgent(tx, wake.agent.id)) {
    if (run.status !== 'queued' || run.triggerSource !== wake.triggerSource || run.taskId !== taskId) continue
    if (run.conversationId !== (wake.conversationId ?? null)) continue
    // A run that no device may take must not take in what somebody else asks for, or what follows other words.
    if (run.causedByUuid !== wake.causedByUuid || !isSame(run.wordsBy, wake.wordsBy)) continue
    if (!isSame(run.instructionsBy, instructionsBy(wake))) continue
    const details = await findDetails(tx, run.id)
    const prompt = details?.prompt ?? null
    const isAlike = wake.prompt === null || (prompt !== null && withoutNews(prompt) === wake.prompt)
    if (isAlike && !(await isToBeCancelled(tx, run.id))) return run
  }
  return null
}

/** Returns who wrote the AGENT.md that the run follows. A command of a workflow follows none. */
export const instructionsBy = ({ agent, commandStep = null }: ReadyWake): Person[] =>
  commandStep !== null || agent.agentMd.trim() === '' ? [] : [agent.agentMdByUuid]

const isSame = (a: readonly Person[], b: readonly Person[]): boolean =>
  a.length === b.length && a.every((person) => b.includes(person))

/** Leaves out settings that are null: the task's or the agent's own stay. */
const withoutNulls = (overrides: RunOverrides): RunOverrides =>
  Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== null))

const overridesOf = (task: WakeTask | null): RunOverrides => ({
  environment: task?.environment ?? null,
  harness: task?.harness ?? null,
  model: task?.modelId ?? null,
  reasoningEffort: task?.reasoningEffort ?? null,
})

/** Reads the facts of a task that admission needs. */
async function loadTaskFacts(
  db: Db,
  task: WakeTask,
  wake: { agent: AgentRow; triggerSource: string; now: number; step: RunStep | null },
): Promise<TaskFacts> {
  const gates = (await openHoldsOfTasks(db, [task.id])).get(task.id) ?? []
  // A workflow's own steps are not held by what it asks.
  const gate = gates.find(({ workflowRunId }) => workflowRunId === null || workflowRunId !== wake.step?.workflowRunId)
  return {
    key: task.key,
    isFinished: await isOver(db, task, wake.step),
    startsLater: startsLater(task, wake.now),
    hasOpenBlocker: await hasOpenBlocker(db, task.id),
    openHold: gate === undefined ? null : { kind: gate.kind, id: gate.id },
    isOthers: wake.triggerSource === 'assignment' && task.assigneeAgentRef !== wake.agent.id,
  }
}
