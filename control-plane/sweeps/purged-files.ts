import type { Blobs } from '../blobs/blobs.ts'
import { inTransaction } from '../db/transaction.ts'
import { purgeMs } from '../resources/files/rules.ts'
import { purgeFile, PurgeTooLateError } from '../resources/files/steps/remove.ts'
import { listDeletedBefore, type FileRow } from '../resources/files/store.ts'
import type { Sweep, SweepContext } from './sweeper.ts'

const atOnce = 200

/** Removes files that were deleted ten minutes ago, with the bytes of all of their versions. */
export function purgedFilesSweep({ blobs, everyMs }: { blobs: Pick<Blobs, 'release'>; everyMs: number }): Sweep {
  return {
    name: 'purged_files',
    everyMs,
    async run({ root, now, queue }) {
      for (const file of await listDeletedBefore(root, now - purgeMs, atOnce))
        queue.add(file.workspaceId, () => purge(root, file, blobs), file.id)
    },
  }
}

async function purge(root: SweepContext['root'], file: FileRow, blobs: Pick<Blobs, 'release'>): Promise<void> {
  try {
    await inTransaction(root, (tx) => purgeFile(tx, file, { blobs }), { locks: [file.workspaceId] })
  } catch (error) {
    if (!(error instanceof PurgeTooLateError)) throw error
  }
}
