import { idFrom, type SandboxId } from '../../../shared/lib/ids.ts'
import { deviceRef, deviceUuid, sandboxId } from '../../db/id-columns.ts'
import { int, text, time } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/open.ts'
import { command } from '../../db/statement.ts'
import { table, type RowOf } from '../../db/table.ts'
import { z } from 'zod'
import { warmStates } from './machine.ts'

const warm = table(
  'warm_sandboxes',
  {
    /** The id (`sbx_...`) of the sandbox that it will be. */
    id: sandboxId,
    engineId: text,
    /** The durable id of the device that it will be to the link, and the id of its connection. */
    device: deviceRef,
    deviceUuid,
    /** Stands for the image, the limits and the place of its folder: a run gets a container that is made of what is set now. */
    madeOf: text,
    /** The image by the digest or id that the engine has of it. */
    image: text,
    /** The folder into which its identity will be written, and in which its broker will listen. */
    folder: text,
    state: z.enum(warmStates),
    stateAt: time,
    /** The time at which a server that would make it again last saw it. */
    keptAt: time,
    version: int,
    createdAt: time,
  },
  { columns: { deviceUuid: 'device_id' } },
)
export type WarmRow = RowOf<typeof warm>

export const insertWarm = (db: Db, row: WarmRow): Promise<void> => warm.insert(db, row)

export const findWarm = (db: Db, id: SandboxId): Promise<WarmRow | null> => warm.find(db, { id })

const ofEngine = warm.query('where engine_id = ? order by created_at, id')
/** Lists the containers of an engine that are made ahead, oldest first. */
export const listWarmOfEngine = (db: Db, engineId: string): Promise<WarmRow[]> => ofEngine.list(db, [engineId])

/** Returns whether the row was as it was read; without that nothing is written. */
export const replaceWarm = (db: Db, before: WarmRow, changes: Partial<WarmRow>): Promise<boolean> =>
  warm.replaceIfSame(db, before, changes)

const keep = command('update warm_sandboxes set kept_at = ? where engine_id = ? and made_of = ?')
/** Notes that containers which are made of this are still wanted. */
export async function keepWarm(db: Db, { engineId, madeOf }: Pick<WarmRow, 'engineId' | 'madeOf'>, at: number) {
  await keep(db, [at, engineId, madeOf])
}

const remove = command('delete from warm_sandboxes where id = ? and version = ?')
/** Returns whether the row was as it was read; without that it stays. */
export const deleteWarm = async (db: Db, { id, version }: WarmRow): Promise<boolean> =>
  (await remove(db, [id, version])) === 1

const ready = warm.query("where engine_id = ? and made_of = ? and state = 'ready' order by created_at, id")
/** The oldest one that is ready, which is nobody else's then; null: there is none. */
export async function takeWarm(
  tx: Tx,
  { engineId, madeOf }: Pick<WarmRow, 'engineId' | 'madeOf'>,
): Promise<WarmRow | null> {
  for (const row of await ready.list(tx, [engineId, madeOf])) if (await deleteWarm(tx, row)) return row
  return null
}

/** The name of its container on the engine, and of its volume. */
export const warmNameOf = (id: string): string => `svc-warm-${id}`

/** Returns whether the volume is that of a container which has no run yet. */
export async function isWarmVolume(db: Db, volume: string): Promise<boolean> {
  const [, id] = /^svc-warm-(\w+)$/.exec(volume) ?? []
  return id !== undefined && (await findWarm(db, idFrom(id))) !== null
}
