import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { openBlobPlace } from '../blobs/location.ts'
import { moveBlobs, type MovedFiles } from '../blobs/move.ts'
import { StorageError } from '../blobs/place.ts'
import type { ServerConfig } from '../config.ts'
import { OperatorError } from './people.ts'

/** Copies all files into the place where servers store new ones, from the one in which they look for what is not there. */
export async function moveFiles(
  root: Knex,
  { files, otherFiles }: Pick<ServerConfig, 'files' | 'otherFiles'>,
  world: World,
): Promise<MovedFiles & { from: string; to: string }> {
  if (otherFiles === null)
    throw new OperatorError('Set SVC_FILES_OTHER_URL to the place where files are, and SVC_FILES_URL to the other one.')
  const [from, to] = [openBlobPlace(otherFiles, world), openBlobPlace(files, world)]
  try {
    return { from: from.name, to: to.name, ...(await moveBlobs(root, { from, to })) }
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    throw new OperatorError(`Not all files are moved: ${error.message}. Type it again to go on.`)
  }
}
