import {
  idFrom,
  type ActorRef,
  type CompanyUuid,
  type DeviceUuid,
  type PersonUuid,
  type WorkspaceUuid,
} from '../../shared/lib/ids.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { insertAgent, type AgentRow } from '../../control-plane/resources/agents/store.ts'
import { insertDevice, type NewDevice } from '../../control-plane/resources/devices/store.ts'
import { insertUser, replaceMember, type Role } from '../../control-plane/resources/members/store.ts'
import type { ProjectRow } from '../../control-plane/resources/projects/store.ts'
import type { NewDetails } from '../../control-plane/resources/runs/details-table.ts'
import { runSpecFixture } from '../kit/run-spec.ts'
import { insertTask, type TaskRow } from '../../control-plane/resources/tasks/store.ts'
import { insertCompany, insertWorkspace } from '../../control-plane/resources/workspaces/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { insertRun, type NewRun } from '../../control-plane/run/change-store.ts'

// Rows for store tests. Every value that a test does not name is made up anew, so that no two rows meet by chance.

export const at = 1_760_000_000_000
const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)
const uuid = () => realWorld.uuid()

export async function seedWorkspace(db: Db, slug = `w-${uuid().slice(0, 8)}`): Promise<WorkspaceUuid> {
  const companyId = realWorld.uuid<CompanyUuid>()
  const workspaceId = realWorld.uuid<WorkspaceUuid>()
  await insertCompany(db, { id: companyId, name: `${slug} company`, at })
  const publicId = id('ws_')
  await insertWorkspace(db, { id: workspaceId, publicId, companyId, name: slug, slug, issuePrefix: 'ABC', at })
  return workspaceId
}

export async function seedPerson(db: Db, workspaceId: WorkspaceUuid, role: Role = 'member'): Promise<PersonUuid> {
  const userId = idFrom<PersonUuid>(uuid())
  const email = `${userId}@example.com`
  await insertUser(db, { id: userId, publicId: id('usr_'), name: 'Somebody', email, createdAt: at })
  await replaceMember(db, { workspaceId, personUuid: userId, role, at })
  return userId
}

export function agentRow(workspaceId: WorkspaceUuid, changes: Partial<AgentRow> = {}): AgentRow {
  const agentId = id('agt_')
  return {
    id: agentId,
    uuid: idFrom(uuid()),
    workspaceId,
    handle: agentId.toLowerCase(),
    name: 'Agent',
    role: 'agent',
    description: null,
    status: 'active',
    model: null,
    backupModel: null,
    reasoningEffort: null,
    sandboxSize: null,
    harness: null,
    fallbackHarness: null,
    environment: 'device',
    maxTurns: null,
    command: null,
    protocol: null,
    skillFolders: null,
    defaultFolderId: null,
    defaultRepoId: null,
    ownerUuid: null,
    visibility: 'company',
    reportingToUuid: null,
    wakeOnAssignment: true,
    wakeOnHook: false,
    toolPermissionMode: null,
    tools: { allow: [], ask: [], deny: [] },
    capabilities: [],
    agentMd: '',
    agentMdHash: '',
    agentMdByUuid: null,
    spentNanoUsd: 0,
    spentMonth: null,
    monthlyBudgetCents: null,
    transferredAt: null,
    sessionsResetAt: null,
    lastRunAt: null,
    tokenGeneration: 1,
    deletedAt: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
}

export async function seedAgent(
  db: Db,
  workspaceId: WorkspaceUuid,
  changes: Partial<AgentRow> = {},
): Promise<AgentRow> {
  const agent = agentRow(workspaceId, changes)
  await insertAgent(db, agent)
  return agent
}

export async function seedDevice(
  db: Db,
  owner: { workspaceId: WorkspaceUuid; personUuid: PersonUuid },
  changes: Partial<NewDevice> = {},
): Promise<NewDevice> {
  const device = {
    deviceUuid: idFrom<DeviceUuid>(uuid()),
    publicId: id('dvc_'),
    ...owner,
    displayName: 'laptop',
    hostname: 'laptop.lan',
    isHostnameSet: false,
    platform: 'linux',
    version: '1',
    maxConcurrent: 3,
    runsBy: 'members' as const,
    remoteControlRevokedAt: null,
    tokenHash: uuid(),
    at,
    ...changes,
  }
  await insertDevice(db, device)
  return device
}

export async function seedRun(
  db: Db,
  agent: AgentRow,
  changes: Partial<NewRun> = {},
  details: Partial<NewDetails> = {},
): Promise<NewRun> {
  const run: NewRun = {
    id: id('run_'),
    workspaceId: agent.workspaceId,
    agentRef: agent.id,
    triggerSource: 'manual',
    requestedByRef: idFrom<ActorRef>('usr_0000000000000000'),
    causedByUuid: null,
    wordsBy: [],
    instructionsBy: [],
    harness: 'claude',
    environmentType: 'device',
    folderId: null,
    repoId: null,
    taskId: null,
    taskKey: null,
    taskTitle: null,
    conversationId: null,
    parentRunId: null,
    inLineSince: null,
    providerKeyId: null,
    fallbackHarness: null,
    fallbackKeyId: null,
    fallbackModel: null,
    compacts: null,
    modelId: null,
    reasoningEffort: null,
    permissionMode: 'full',
    createdAt: at,
    ...changes,
  }
  await insertRun(db, run, {
    prompt: null,
    spec: runSpecFixture(run.id),
    fallbackSpec: null,
    manifest: null,
    ...details,
  })
  return run
}

export function taskRow(workspaceId: WorkspaceUuid, changes: Partial<TaskRow> = {}): TaskRow {
  return {
    id: id('tsk_'),
    workspaceId,
    key: `ABC-${uuid()}`.toUpperCase(),
    projectId: null,
    parentTaskId: null,
    goalId: null,
    workflowRef: null,
    title: 'Task',
    description: null,
    status: 'open',
    assigneeAgentRef: null,
    assignedByUuid: null,
    titleByUuid: null,
    descriptionByUuid: null,
    priority: 'normal',
    dueAt: null,
    startAt: null,
    wakeAt: null,
    branchName: null,
    repoId: null,
    baseBranch: null,
    pullRequest: null,
    environment: null,
    harness: null,
    modelId: null,
    reasoningEffort: null,
    sandboxSize: null,
    createdByType: 'system',
    createdByRef: null,
    startedAt: null,
    completedAt: null,
    cancelledAt: null,
    archivedAt: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
}

export async function seedTask(db: Db, workspaceId: WorkspaceUuid, changes: Partial<TaskRow> = {}): Promise<TaskRow> {
  const task = taskRow(workspaceId, changes)
  await insertTask(db, task)
  return task
}

/** Not stored yet. */
export const projectRow = (workspaceId: WorkspaceUuid, changes: Partial<ProjectRow> = {}): ProjectRow => ({
  id: idFrom(uuid()),
  workspaceId,
  name: 'Project',
  description: '',
  status: 'active',
  prefix: null,
  leadAgentUuid: null,
  ownerUuid: null,
  visibility: 'company',
  repoUrl: null,
  deletedAt: null,
  version: 1,
  createdAt: at,
  updatedAt: at,
  ...changes,
})

/** Says how a compare-and-set fails when another one was first. */
export const wroteSecond = { code: 'transient_conflict' }
