import { idFrom, type FileId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { fail } from '../../../shared/api/errors.ts'
import type { Attachment } from '../../../shared/api/messages.ts'
import type { Db } from '../../db/open.ts'
import { inQuotes, onOneLine } from '../../trust/quote.ts'
import { listFilesByIds, type FileRow } from '../files/store.ts'
import type { FileViewer } from '../files/visibility.ts'
import type { MessageRow } from './message-store.ts'

// Files that messages name. Whoever does not see a file does not see that it is attached.

/** Fails with `resource_not_found` for an id that names no file which the viewer sees. */
export async function checkAttachments(
  db: Db,
  { workspaceId, viewer, ids }: { workspaceId: WorkspaceUuid; viewer: FileViewer; ids: readonly FileId[] },
): Promise<FileId[]> {
  const wanted = [...new Set(ids)]
  const known = new Set((await listFilesByIds(db, { workspaceId, ids: wanted, visibleTo: viewer })).map(({ id }) => id))
  const unknown = wanted.find((id) => !known.has(id))
  if (unknown !== undefined)
    fail('resource_not_found', {
      param: 'attachmentIds',
      message: `There is no file ${unknown} that you can see.`,
      details: { attachmentId: unknown },
    })
  return wanted
}

type Attaching = Pick<MessageRow, 'attachmentIds' | 'deletedAt'>
/** Returns the attachments of a message in their order; a deleted message has none. */
export type AttachmentsOf = (message: Attaching) => Attachment[]

export async function loadAttachments(
  db: Db,
  { workspaceId, viewer }: { workspaceId: WorkspaceUuid; viewer: FileViewer },
  messages: readonly Attaching[],
): Promise<AttachmentsOf> {
  const ids = [...new Set(messages.flatMap(({ attachmentIds }) => attachmentIds))]
  const files = await listFilesByIds(db, { workspaceId, ids, visibleTo: viewer })
  const shown = new Map(files.map((file) => [file.id, toAttachment(file)]))
  return ({ attachmentIds, deletedAt }) =>
    deletedAt === null ? attachmentIds.flatMap((id) => shown.get(id) ?? []) : []
}

const toAttachment = ({ id, name, contentType, sizeBytes }: FileRow): Attachment => ({
  id,
  name,
  contentType: contentType ?? 'application/octet-stream',
  sizeBytes,
})

const heading =
  'The message has files. `svc file read ID` prints a text, `svc file download ID --output PATH` fetches any of them:'

/** Tells an agent which files a message has, and how to get them; empty without any. */
export function toldAttachments(attachments: readonly Attachment[]): string {
  if (attachments.length === 0) return ''
  const lines = attachments.map(
    ({ id, name, contentType, sizeBytes }) =>
      `- ${id} ${inQuotes(name)} (${onOneLine(contentType)}, ${sizeBytes} bytes)`,
  )
  return `${heading}\n${lines.join('\n')}`
}

/** The file that a line of `toldAttachments` names. In parts, since a prompt may be one long line that is made to be read slowly. */
function toldIn(line: string): string | null {
  const [, id = null] = /^- (file_[0-9A-Za-z]{16}) "/.exec(line) ?? []
  return id !== null && /, \d{1,9} bytes\)$/.test(line) ? id : null
}

const idsAtOnce = 1_000

/** A prompt that told an agent of files, without those that this viewer does not see. */
export async function withoutHiddenFiles(
  db: Db,
  { workspaceId, viewer }: { workspaceId: WorkspaceUuid; viewer: FileViewer },
  prompt: string,
): Promise<string> {
  const lines = prompt.split('\n')
  const ids = [...new Set(lines.flatMap((line) => toldIn(line) ?? []).map((id) => idFrom<FileId>(id)))]
  const seen = new Set<string>()
  // A prompt may be made to name more of them than a statement takes.
  for (let at = 0; at < ids.length; at += idsAtOnce) {
    const some = ids.slice(at, at + idsAtOnce)
    for (const { id } of await listFilesByIds(db, { workspaceId, ids: some, visibleTo: viewer })) seen.add(id)
  }
  if (ids.every((id) => seen.has(id))) return prompt
  const shown = lines.filter((line) => {
    const id = toldIn(line)
    return id === null || seen.has(id)
  })
  return shown.filter((line, at) => line !== heading || toldIn(shown[at + 1] ?? '') !== null).join('\n')
}
