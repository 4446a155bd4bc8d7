import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { BaseRecord } from './base-store.ts'
import type { IndexEntry } from './index-file.ts'
import type { View } from './listing.ts'
import type { PatchedFile } from './patch.ts'
import { readRegularFile } from './regular-file.ts'

/** A larger new file is left to git. */
const maxFileBytes = 256 * 1024
const maxFolders = 500
/** Files read before others get a turn. */
const batchSize = 32
/** git looks through so much of a content for a NUL before it takes it for text. */
const binaryProbeBytes = 8_000
/** Names that git prints as they are: no quotes around them, no tab behind them. */
const plainPath = /^[!#-[\]-~]+$/

export interface NewFiles {
  patched: PatchedFile[]
  /** Files that git must be asked about. */
  rest: IndexEntry[]
}

/**
 * The patch of a new text file is all of its lines: it is written here as git would print it, without the process that a
 * comparison costs. Only where nothing was deleted (a new file may be a renamed one) and nothing can change what its
 * content is (attributes, line ends); everything else is left to git.
 */
export async function describeNewFiles(
  view: View,
  record: BaseRecord,
  entries: readonly IndexEntry[],
): Promise<NewFiles> {
  const described: NewFiles = { patched: [], rest: [] }
  if (mayConvert(view, record, entries)) return { patched: [], rest: [...entries] }
  for (const [index, entry] of entries.entries()) {
    if (index % batchSize === batchSize - 1) await turn()
    const file = isPlain(entry) ? describe(view, record, entry) : null
    if (file === null) described.rest.push(entry)
    else described.patched.push(file)
  }
  return described
}

function isPlain({ path, mode, oid }: IndexEntry): boolean {
  return oid === null && (mode === '100644' || mode === '100755') && plainPath.test(path)
}

/** Says whether git may see another content than the file's bytes, or print it in another way. */
function mayConvert({ storeDir, topLevel }: View, { settings }: BaseRecord, entries: readonly IndexEntry[]): boolean {
  const { values } = settings
  if ((values['core.autocrlf'] ?? 'false') !== 'false' || values['core.attributesfile'] !== undefined) return true
  const folders = new Set<string>([''])
  for (const { path } of entries) {
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at + 1))
  }
  if (folders.size > maxFolders) return true
  const below = [...folders].map((folder) => `${topLevel}/${Buffer.from(folder, 'latin1').toString()}.gitattributes`)
  return [join(storeDir, 'info', 'attributes'), ...attributesOfAll(), ...below].some((path) => existsSync(path))
}

/** Returns the attribute files of the person and of the machine. */
function attributesOfAll(): string[] {
  const { HOME: home, XDG_CONFIG_HOME: xdg, PATH: path } = process.env
  const own = xdg ? join(xdg, 'git') : home ? join(home, '.config', 'git') : null
  const etc = (path ?? '').split(':').map((dir) => join(dirname(dir), 'etc', 'gitattributes'))
  return ['/etc/gitattributes', ...new Set(etc), ...(own === null ? [] : [join(own, 'attributes')])]
}

function describe(view: View, record: BaseRecord, { path, mode }: IndexEntry): PatchedFile | null {
  const content = readWhole(`${view.topLevel}/${path}`)
  if (content === null || content.subarray(0, binaryProbeBytes).includes(0)) return null
  const zero = '0'.repeat(record.objectFormat === 'sha256' ? 64 : 40)
  const oid = createHash(record.objectFormat).update(`blob ${content.length}\0`).update(content).digest('hex')
  const head = `diff --git a/${path} b/${path}\nnew file mode ${mode}\nindex ${zero}..${oid}\n`
  const { hunk, additions } = added(content)
  const names = additions === 0 ? '' : `--- /dev/null\n+++ b/${path}\n`
  const whole = Buffer.concat([Buffer.from(head + names), hunk])
  const isOver = whole.length > view.limits.filePatchBytes
  const isText = isOver || isUtf8(whole)
  return {
    letter: 'A',
    oldMode: '000000',
    newMode: mode,
    oldOid: zero,
    oldPath: path,
    path,
    binary: false,
    additions,
    deletions: 0,
    patch: isText && !isOver ? whole : null,
    isText,
  }
}

/** Null for what is no small file, or is not there any more. */
function readWhole(path: string): Buffer | null {
  try {
    return readRegularFile(path, { maxBytes: maxFileBytes, followLinks: false })
  } catch {
    return null
  }
}

function added(content: Buffer): { hunk: Buffer; additions: number } {
  if (content.length === 0) return { hunk: content, additions: 0 }
  const lines: Buffer[] = []
  const plus = Buffer.from('+')
  let count = 0
  for (let at = 0; at < content.length; count++) {
    const newline = content.indexOf(0x0a, at)
    const end = newline < 0 ? content.length : newline + 1
    lines.push(plus, content.subarray(at, end))
    at = end
  }
  if (content.at(-1) !== 0x0a) lines.push(Buffer.from('\n\\ No newline at end of file\n'))
  const range = count === 1 ? '+1' : `+1,${count}`
  return { hunk: Buffer.concat([Buffer.from(`@@ -0,0 ${range} @@\n`), ...lines]), additions: count }
}
