import type { RunId, SandboxId, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { sandboxSizes } from '../../../shared/api/agents.ts'
import { int, nullableFlag, nullableText, nullableTime, text, time } from '../../db/columns.ts'
import { deviceRef, runId, sandboxId, workspaceUuid } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { query } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'
import { sandboxStates } from '../../../shared/runs/sandbox-states.ts'
import { newestFirst, type OlderPage } from '../../db/id-page.ts'
import { isWarmVolume } from './warm-store.ts'

const sandboxes = table('sandboxes', {
  /** `sbx_...` */
  id: sandboxId,
  workspaceId: workspaceUuid,
  runId,
  /** The fence of the offer that is made to it. */
  fence: int,
  engineId: text,
  /** The durable id of the device that it is to the link. */
  device: deviceRef,
  size: z.enum(sandboxSizes),
  /**
   * The folder on the machine with the engine, with the sandbox's token and the socket of its broker; null: nobody has begun to create it.
   */
  folder: nullableText,
  state: z.enum(sandboxStates),
  /** The image by the digest or id that the engine has of it; null: nobody has begun to create it. */
  image: nullableText,
  /** The volume of the sandbox before, with which it goes on, or that of a container which was made ahead; null: its own. */
  volume: nullableText,
  /** The name of the container that was made ahead, and of its volume; null: the sandbox has a container of its own. */
  container: nullableText,
  /** The container ended for want of memory. */
  outOfMemory: nullableFlag,
  /** The volume is kept for a sandbox that goes on with it, and has not been made yet. */
  leavesVolume: nullableFlag,
  /** A text for people about what went wrong with it; null: nothing is known. */
  trouble: nullableText,
  /** Since when it is in its state. */
  stateAt: time,
  /** The time at which its container and its volume were gone; null: it is not removed. */
  removedAt: nullableTime,
  version: int,
  createdAt: time,
})
export type SandboxRow = RowOf<typeof sandboxes>

/** Throws the database's unique violation when the run has a sandbox that is not removed. */
export async function insertSandbox(db: Db, row: SandboxRow): Promise<void> {
  await sandboxes.insert(db, row)
}

/** Returns whether the row was as it was read; without that nothing is written. */
export const replaceSandbox = (db: Db, before: SandboxRow, changes: Partial<SandboxRow>): Promise<boolean> =>
  sandboxes.replaceIfSame(db, before, changes)

export const findSandbox = (db: Db, id: SandboxId): Promise<SandboxRow | null> => sandboxes.find(db, { id })

const ofRun = sandboxes.query('where run_id = ? order by created_at desc limit 1')
/** The last one of a run, also when it is gone. */
export const findSandboxOfRun = (db: Db, runId: RunId): Promise<SandboxRow | null> => ofRun.first(db, [runId])

const ofEngine = sandboxes.query('where engine_id = ? and removed_at is null order by created_at')
/** Lists the sandboxes of an engine that are not removed, oldest first. */
export const listSandboxesOfEngine = (db: Db, engineId: string): Promise<SandboxRow[]> => ofEngine.list(db, [engineId])

const count = query(
  'select count(*) as count from sandboxes where engine_id = ? and removed_at is null',
  z.object({ count: int }),
)
export const countSandboxesOfEngine = async (db: Db, engineId: string): Promise<number> =>
  (await count.list(db, [engineId]))[0]?.count ?? 0

/** Newest first; one row more than `limit`. */
export async function listSandboxes(
  db: Db,
  { workspaceId, withRemoved, ...page }: { workspaceId: WorkspaceUuid; withRemoved: boolean } & OlderPage,
): Promise<SandboxRow[]> {
  const found = sandboxes.from(db).where({ workspace_id: workspaceId })
  return sandboxes.list(newestFirst(withRemoved ? found : found.whereNull('removed_at'), page))
}

/** Returns the name of the sandbox's container on the engine, and of its own volume. */
export const engineNameOf = ({ runId, fence, container }: Pick<SandboxRow, 'runId' | 'fence' | 'container'>): string =>
  container ?? `svc-${runId}-${fence}`

/** Returns the name of the volume with which the sandbox works: its own, or that of the sandbox before. */
export const volumeOf = (row: SandboxRow): string => row.volume ?? engineNameOf(row)

/** Returns whether a sandbox goes on with the volume of the one before it. */
export const takesOverVolume = ({ volume, container }: SandboxRow): boolean => volume !== null && container === null

const left = sandboxes.query('where engine_id = ? and leaves_volume = 1 and removed_at is not null order by created_at')
/** Lists the sandboxes of an engine that are removed and whose volumes are kept, oldest first. */
export const listLeftVolumes = (db: Db, engineId: string): Promise<SandboxRow[]> => left.list(db, [engineId])

const takers = sandboxes.query('where volume = ? and (removed_at is null or leaves_volume = 1) limit 1')
const owner = sandboxes.query('where run_id = ? and fence = ? order by created_at desc limit 1')
/** Returns whether a sandbox has this volume, goes on with it, or leaves it to one that will. */
export async function isVolumeNeeded(db: Db, volume: string): Promise<boolean> {
  // Containers without a run are looked at first: from there one comes to a sandbox, and never back.
  if (await isWarmVolume(db, volume)) return true
  const [, runId = '', fence = '0'] = /^svc-(\w+)-(\d{1,9})$/.exec(volume) ?? []
  const own = await owner.first(db, [runId, Number(fence)])
  if (own !== null && (own.leavesVolume === true || (own.removedAt === null && volumeOf(own) === volume))) return true
  return (await takers.first(db, [volume])) !== null
}

const engines = table('sandbox_engines', {
  /** The id by which the engine names itself. */
  id: text,
  kind: text,
  /** Sandboxes that it may have at once, in all and of one workspace. */
  most: int,
  mostOfWorkspace: int,
  /** The time at which a server last found it able to take sandboxes. */
  readyAt: time,
})
export type EngineRow = RowOf<typeof engines>

const waitingForCloud = query(
  `select distinct workspace_id from runs
   where ended_at is null and status = 'queued' and lease_state = 'none' and environment_type = 'cloud'`,
  z.object({ workspace_id: workspaceUuid }),
)
/** The workspaces in which runs of the cloud wait. */
export const listWorkspacesWaitingForCloud = async (db: Db): Promise<WorkspaceUuid[]> =>
  (await waitingForCloud.list(db, [])).map((row) => row.workspace_id)

export async function recordEngine(db: Db, engine: EngineRow): Promise<void> {
  await db('sandbox_engines').insert(engines.toColumns(engine)).onConflict('id').merge()
}

/** An engine that no server has found ready for so long takes no sandboxes. */
export const engineAwayMs = 90_000

const roomOfEngines = query(
  `select
     most - (select count(*) from sandboxes where removed_at is null and engine_id = sandbox_engines.id) as left_in_all,
     most_of_workspace - (
       select count(*) from sandboxes where removed_at is null and engine_id = sandbox_engines.id and workspace_id = ?
     ) as left_of_workspace
   from sandbox_engines where ready_at > ?`,
  z.object({ left_in_all: int, left_of_workspace: int }),
)

/** Returns how many more sandboxes a workspace may have now; null: no engine is ready. */
export async function findCloudRoom(db: Db, workspaceId: WorkspaceUuid, now: number): Promise<number | null> {
  const rows = await roomOfEngines.list(db, [workspaceId, now - engineAwayMs])
  if (rows.length === 0) return null
  return Math.max(0, ...rows.map((row) => Math.min(row.left_in_all, row.left_of_workspace)))
}
