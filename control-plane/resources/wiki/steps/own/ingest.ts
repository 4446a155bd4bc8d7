import type { WorkspaceUuid } from '../../../../../shared/lib/ids.ts'
import type { PublishCheck } from '../../../../../shared/api/wiki-fields.ts'
import type { World } from '../../../../../shared/lib/world.ts'
import { sourceKind } from '../../../../../shared/lib/source-path.ts'
import type { Db } from '../../../../db/open.ts'
import { slugsOfFile, titleOfFile, type File } from '../../own/ingest-rules.ts'
import type { PageReading } from '../../read-page.ts'
import { insertSource, updateSource, type ListedSource } from '../../own/source-store.ts'
import { findPage, listPagesBySlugs, type WikiPageRow } from '../../store.ts'
import { changePage, makePage, textOfRevived, type Revived } from './page.ts'
import { addRevision, type RevisionDraft } from './publish.ts'

/** The text of a file. */
export interface FileText extends File {
  title?: string | undefined
  body: string
}

/** Makes or changes the page of a file. A text that fails checks is kept; readers see what they saw. Returns the checks. */
export async function ingestFile(
  db: Db,
  {
    workspaceId,
    root,
    file,
    known,
    reading,
    revived,
    author,
  }: {
    workspaceId: WorkspaceUuid
    root: string
    file: FileText
    known: ListedSource | undefined
    reading: PageReading
    revived: Revived | null
    author: RevisionDraft['author']
  },
  world: World,
): Promise<PublishCheck[]> {
  const { path, sha256, body } = file
  const sourceRef = `${root}/${path}`
  const title = file.title ?? titleOfFile({ path, heading: reading.heading })
  const page =
    known === undefined
      ? await newPage(db, { workspaceId, path, title, sourceRef }, world)
      : await livePage(db, workspaceId, known, { reading, revived, world })
  if (known === undefined) await insertSource(db, { pageId: page.id, workspaceId, root, path, sha256 })
  else await updateSource(db, page.id, sha256)
  const failedChecks = reading.flaws.map(({ check }) => check)
  await addRevision(db, page, { title, body, reading, author, sourceRef, failedChecks }, world)
  return failedChecks
}

async function newPage(
  db: Db,
  {
    workspaceId,
    path,
    title,
    sourceRef,
  }: { workspaceId: WorkspaceUuid; path: string; title: string; sourceRef: string },
  world: World,
): Promise<WikiPageRow> {
  const slugs = slugsOfFile(path)
  const taken = new Set((await listPagesBySlugs(db, { workspaceId, slugs })).map((page) => page.slug))
  const slug = slugs.find((one) => !taken.has(one)) ?? `page-${world.uuid()}`
  return makePage(db, { workspaceId, slug, title, kind: sourceKind(path) ?? 'markdown', sourceRef }, world)
}

/** A file that comes back makes its page live again. */
async function livePage(
  db: Db,
  workspaceId: WorkspaceUuid,
  { pageId }: ListedSource,
  { reading, revived, world }: { reading: PageReading; revived: Revived | null; world: World },
): Promise<WikiPageRow> {
  const page = await findPage(db, workspaceId, pageId)
  if (page === null) throw new Error(`the page ${pageId} of a file is gone`)
  if (page.archivedAt === null) return page
  // A text that is not published must not be found.
  const liveAs = reading.flaws.length === 0 ? reading.searchable : textOfRevived(page, revived)
  return changePage(db, page, { archived: { liveAs } }, world)
}
