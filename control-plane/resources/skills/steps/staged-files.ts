import type { ApprovalId, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { stagedTextLimits } from '../../../../shared/api/approval-includes.ts'
import type { Blobs } from '../../../blobs/blobs.ts'
import type { Db } from '../../../db/open.ts'
import { findPlatformChange } from '../../platform-changes/store.ts'
import { listStagedBundles } from '../bundle-store.ts'
import { shownText } from '../bundle.ts'
import { readBundleFile } from './bundle.ts'

const skillOf = z.object({ slug: z.string(), bundle: z.object({ bundleId: z.string() }) })
/** The parts of a change of skills or of a plugin that say whose files are whose. */
const changeBody = z.object({
  name: z.string().optional(),
  skills: z.array(skillOf).optional(),
  root: z.object({ bundle: z.object({ bundleId: z.string() }) }).nullish(),
})

/** Names the folders of staged bundles: of skills in their order, and last that of all files of a plugin. */
function foldersIn(body: unknown): Map<string, string> {
  const { name, skills = [], root } = changeBody.safeParse(body).data ?? {}
  const folders = new Map(skills.map(({ slug, bundle }) => [bundle.bundleId, slug]))
  if (root != null && name !== undefined) folders.set(root.bundle.bundleId, name)
  return folders
}

/** The files of skills and plugins that wait for the approval of a change, with as much of their text as a person reads. */
export async function stagedFilesOf(
  db: Db,
  { workspaceId, changeId }: { workspaceId: WorkspaceUuid; changeId: ApprovalId },
  blobs: Pick<Blobs, 'open'>,
) {
  const files = []
  let left: number = stagedTextLimits.bytes
  const change = await findPlatformChange(db, workspaceId, changeId)
  const folders = foldersIn(change?.body)
  const order = [...folders.keys()]
  const bundles = await listStagedBundles(db, workspaceId, changeId)
  for (const bundle of bundles.toSorted((a, b) => order.indexOf(a.id) - order.indexOf(b.id)))
    for (const file of bundle.files) {
      const most = Math.min(left, stagedTextLimits.fileBytes)
      // Whoever cannot read it now still sees what there is.
      const read = await readBundleFile(bundle, { path: file.path, most, blobs }).catch(() => null)
      const isCut = read === null || file.sizeBytes > most
      const content = read === null || most === 0 ? null : shownText(read.bytes, isCut)
      if (content !== null) left -= Math.min(most, file.sizeBytes)
      const folder = folders.get(bundle.id) ?? bundle.frontMatter.name
      files.push({ ...file, path: folder === null ? file.path : `${folder}/${file.path}`, content, truncated: isCut })
    }
  return files
}
