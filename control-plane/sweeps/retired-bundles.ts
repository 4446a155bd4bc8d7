import type { Blobs } from '../blobs/blobs.ts'
import { inTransaction } from '../db/transaction.ts'
import { listGoneBundles, removeBundle } from '../resources/skills/bundle-store.ts'
import { retiredMs } from '../resources/skills/rules.ts'
import type { Sweep } from './sweeper.ts'

const atOnce = 200

/** Removes bundles that skills had two days ago, and those staged for changes that were not approved. */
export function retiredBundlesSweep({ blobs, everyMs }: { blobs: Pick<Blobs, 'release'>; everyMs: number }): Sweep {
  return {
    name: 'retired_bundles',
    everyMs,
    async run({ root, now, queue }) {
      for (const { id, workspaceId, blobId } of await listGoneBundles(root, {
        retiredBefore: now - retiredMs,
        limit: atOnce,
      })) {
        const remove = () =>
          inTransaction(
            root,
            async (tx) => {
              if (await removeBundle(tx, id)) await blobs.release(tx, [blobId])
            },
            { locks: [workspaceId] },
          )
        queue.add(workspaceId, remove, id)
      }
    },
  }
}
