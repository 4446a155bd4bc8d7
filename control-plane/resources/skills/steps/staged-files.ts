import { stagedTextLimits } from '../../../../shared/api/approvals.ts'
import type { Blobs } from '../../../blobs/blobs.ts'
import type { Db } from '../../../db/open.ts'
import { listStagedBundles } from '../bundle-store.ts'
import { shownText } from '../bundle.ts'
import { readBundleFile } from './bundle.ts'

/** The files of skills that wait for the approval of a change, with as much of their text as a person reads. */
export async function stagedFilesOf(
  db: Db,
  { workspaceId, changeId }: { workspaceId: string; changeId: string },
  blobs: Pick<Blobs, 'open'>,
) {
  const files = []
  let left: number = stagedTextLimits.bytes
  for (const bundle of await listStagedBundles(db, workspaceId, changeId))
    for (const file of bundle.files) {
      const most = Math.min(left, stagedTextLimits.fileBytes)
      // Whoever cannot read it now still sees what there is.
      const read = await readBundleFile(bundle, { path: file.path, most, blobs }).catch(() => null)
      const isCut = read === null || file.sizeBytes > most
      const content = read === null || most === 0 ? null : shownText(read.bytes, isCut)
      if (content !== null) left -= Math.min(most, file.sizeBytes)
      const { name } = bundle.frontMatter
      files.push({ ...file, path: name === null ? file.path : `${name}/${file.path}`, content, truncated: isCut })
    }
  return files
}
