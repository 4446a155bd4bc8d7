import type { PersonUuid, RunId, SandboxId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { SandboxSize } from '../../shared/api/agents.ts'
import { inPages } from '../db/table.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Tx } from '../db/open.ts'
import { hashToken } from '../http/token-hash.ts'
import { lockPlacement } from '../run/placement/facts.ts'
import { sandboxPlace } from '../run/places/sandbox.ts'
import { placeRun } from '../run/placement/placement.ts'
import { findWaiting, listWaiting, type WaitingRun } from '../run/placement/waiting-store.ts'
import { findAgent } from '../resources/agents/store.ts'
import { insertDevice } from '../resources/devices/store.ts'
import { listAdmins } from '../resources/members/store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import { nextSize } from '../resources/sandboxes/sizes.ts'
import {
  findSandboxOfRun,
  insertSandbox,
  listWorkspacesWaitingForCloud,
  replaceSandbox,
  type SandboxRow,
  volumeOf,
} from '../resources/sandboxes/store.ts'
import { takeWarm, warmNameOf } from '../resources/sandboxes/warm-store.ts'
import { findTaskById } from '../resources/tasks/store.ts'
import { findWorkspace } from '../resources/workspaces/store.ts'
import { warmSize } from './warm-pool.ts'

export interface WantingContext {
  root: Knex
  world: World
  leaseMs: number
  engineId: string
  tokenOf: (sandboxId: SandboxId) => string
  /** The digest of what a container that was made ahead must be made of to be given to a run; null: none is given. */
  madeOf: string | null
  /** Called when a run has been given such a container. */
  taken: () => void
}

/** The runs of one workspace that are looked at at once. */
const perWorkspace = 200
const pageSize = 500

/**
 * Writes a row for each run that is to have a sandbox now, and the device that the sandbox will be to the link. Workspaces take turns, with
 * their oldest runs first. Returns how many there are.
 */
export async function wantSandboxes(context: WantingContext): Promise<number> {
  const { root } = context
  const lines: RunId[][] = []
  for (const workspaceId of await listWorkspacesWaitingForCloud(root)) {
    lines.push(await listWanting(root, workspaceId))
  }
  let made = 0
  for (let turn = 0; lines.some((line) => line.length > turn); turn++)
    for (const line of lines) {
      const runId = line[turn]
      const outcome = runId === undefined ? 'none' : await wantOne(context, runId)
      if (outcome === 'made') made++
      // Room that is there in the next moment is not for those behind it.
      if (outcome === 'full') line.length = 0
    }
  return made
}

/** The runs of a workspace that have no sandbox, oldest first. Any number of runs for devices may wait before them. */
async function listWanting(root: Knex, workspaceId: WorkspaceUuid): Promise<RunId[]> {
  const found: RunId[] = []
  for await (const page of inPages<WaitingRun>(pageSize, (next) =>
    listWaiting(root, { workspaceId, after: null, ...next }),
  )) {
    for (const { id, facts } of page) if (facts.cloud?.device === null) found.push(id)
    if (found.length >= perWorkspace) break
  }
  return found
}

/** `none`: the run waits for something else, or somebody else was faster. */
async function wantOne(context: WantingContext, runId: RunId): Promise<'made' | 'full' | 'none'> {
  const { root, world, leaseMs, taken } = context
  const listed = await findRun(root, runId)
  if (listed === null) return 'none'
  const want = async (tx: Tx): Promise<'made' | 'full' | 'none'> => {
    const moment = { now: world.now(), leaseMs }
    const { facts, refusalOf } = await lockPlacement(tx, listed.workspaceId, moment)
    const [waiting] = await findWaiting(tx, [runId])
    if (waiting === undefined || refusalOf(sandboxPlace) !== null) return 'none'
    const placement = placeRun(waiting.facts, facts)
    if (placement.kind === 'gate' && placement.reason === 'capacity') return 'full'
    const run = placement.kind === 'to_make' ? await findRun(tx, runId) : null
    if (run === null) return 'none'
    const before = await findBefore(tx, run)
    // The volume is on that engine, and still in use until it is removed.
    if (before !== null && (before.removedAt === null || before.engineId !== context.engineId)) return 'none'
    const isWarm = await write(tx, run, { ...context, before })
    if (before !== null) await replaceSandbox(tx, before, { leavesVolume: false })
    if (isWarm) taken()
    return 'made'
  }
  return inTransaction(root, want, { locks: [listed.workspaceId, 'sandboxes'] })
}

/** The sandbox with whose volume the run goes on, in one of the next size up; null: it begins with an empty one. */
async function findBefore(tx: Tx, { parentRunId }: RunRow): Promise<SandboxRow | null> {
  const before = parentRunId === null ? null : await findSandboxOfRun(tx, parentRunId)
  return before?.leavesVolume === true ? before : null
}

/** Returns whether it has a container that was made ahead. */
async function write(
  tx: Tx,
  run: RunRow,
  { world, engineId, tokenOf, madeOf, before }: WantingContext & { before: SandboxRow | null },
): Promise<boolean> {
  const at = world.now()
  const { workspaceId } = run
  const size = (before && nextSize(before.size)) ?? (await sizeOf(tx, run))
  const isWarm = madeOf !== null && before === null && size === warmSize
  const warm = isWarm ? await takeWarm(tx, { engineId, madeOf }) : null
  const { id, device, deviceUuid } = warm ?? {
    id: world.id('sbx_'),
    device: world.id('dvc_'),
    deviceUuid: world.uuid(),
  }
  const sandbox: SandboxRow = {
    id,
    workspaceId,
    runId: run.id,
    fence: run.fence + 1,
    engineId,
    device,
    size,
    folder: warm && warm.folder,
    image: warm && warm.image,
    volume: warm === null ? before && volumeOf(before) : warmNameOf(warm.id),
    container: warm && warmNameOf(warm.id),
    outOfMemory: null,
    leavesVolume: null,
    state: 'wanted',
    trouble: null,
    stateAt: at,
    removedAt: null,
    version: 1,
    createdAt: at,
  }
  await insertSandbox(tx, sandbox)
  await insertDevice(tx, {
    deviceUuid,
    publicId: device,
    workspaceId,
    // A row needs somebody; what a sandbox may do never depends on who it is (causeThrough, trust).
    personUuid: run.causedByUuid ?? (await anyPerson(tx, run)),
    displayName: `Sandbox of ${run.id}`,
    hostname: null,
    isHostnameSet: true,
    platform: 'linux',
    version: null,
    maxConcurrent: 1,
    runsBy: 'members',
    remoteControlRevokedAt: null,
    tokenHash: hashToken(tokenOf(id)),
    sandboxId: id,
    at,
  })
  return warm !== null
}

async function anyPerson(tx: Tx, { agentRef, workspaceId }: RunRow): Promise<PersonUuid> {
  const owner = (await findAgent(tx, agentRef))?.ownerUuid ?? null
  const person = owner ?? (await listAdmins(tx, workspaceId))[0]
  if (person === undefined) throw new Error(`${workspaceId} has no admin`)
  return person
}

/** The task's, else the agent's, else the workspace's, else small. */
async function sizeOf(tx: Tx, { taskId, agentRef, workspaceId }: RunRow): Promise<SandboxSize> {
  const task = taskId === null ? null : await findTaskById(tx, taskId)
  if (task?.sandboxSize) return task.sandboxSize
  const agent = await findAgent(tx, agentRef)
  if (agent?.sandboxSize) return agent.sandboxSize
  return (await findWorkspace(tx, workspaceId))?.sandboxSize ?? 'small'
}
