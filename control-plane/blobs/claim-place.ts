import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { StartError } from '../process/config-error.ts'
import { findServerKey, serverKey } from '../db/server-keys.ts'
import type { BlobPlace } from './place.ts'

/**
 * Ties the place of files to the database by a mark that both have. A replica whose place lacks the mark of the database does
 * not share it with the others: files that they store would be missing here, so it refuses to start. So does a server whose
 * disk is not mounted.
 *
 * The mark is in the place before it is in the database: a start that dies in between leaves a mark that nobody asks for.
 */
export async function claimPlace(root: Knex, place: BlobPlace, world: World): Promise<void> {
  await claimMarked({ root, place, world, known: await findMark(root) })
}

/** The mark of the database; null: no server has claimed a place for it. */
export const findMark = (root: Knex): Promise<string | null> => findServerKey(root, keyName)

export async function claimMarked({ root, place, world, known }: MarkedClaim): Promise<void> {
  const mark = known ?? (await newMark(root, place, world))
  if (!(await place.isMarked(mark)))
    throw new StartError(
      `The files of this database are not in ${place.name}. All replicas share one folder or bucket (SVC_FILES_URL); ` +
        `files that were moved keep their folder ${mark}.`,
    )
  place.use(mark)
}

export interface MarkedClaim {
  root: Knex
  place: BlobPlace
  world: World
  /** The mark that the database has. */
  known: string | null
}

const keyName = 'files_mark'

/** Makes the mark: of several replicas that start at once, one names it for all. */
async function newMark(root: Knex, place: BlobPlace, world: World): Promise<string> {
  const mine = world.id('files_')
  await place.mark(mine)
  return serverKey(root, keyName, { value: mine, at: world.now() })
}
