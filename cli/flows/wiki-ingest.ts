import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { maxIngestBytes, maxIngestFiles } from '../../shared/lib/wiki-limits.ts'
import { localText } from '../arguments/values.ts'
import type { Flow } from '../context/context.ts'
import { CliError, usageError } from '../errors/cli-error.ts'
import type { Client } from '../calls/client.ts'
import { printReply } from '../http/route-call.ts'
import { listSourceFiles, readSource, type Skipped, type SourceFile } from '../machine/source-files.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'

const path = '/api/v1/wiki/ingest'
/** Texts of one request: what publishes more takes long, and is repeated as a whole when it fails. */
const maxTexts = 100

/**
 * `wiki ingest`: brings the files of a directory, of which the server says which it lacks. Exit status 1 when a file could not be
 * sent, or was kept without being published.
 */
export const wikiIngest: Flow = async (context) => {
  const dir = context.resolvePath(localText(context.values, 'dir') ?? '')
  const root = textAt(context.values.body, 'root') ?? basename(dir)
  if (root === '') throw usageError('This directory has no name: give one with --root.')
  const isDirectory = await stat(dir).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
  if (!isDirectory) throw new CliError('no_directory', `${dir} is no directory.`)
  const { files, skipped } = listSourceFiles(dir)
  if (files.length > maxIngestFiles)
    throw new CliError('too_many_files', `${dir} has more than ${maxIngestFiles} files. Ingest parts of it.`)
  const client = await context.connect()
  const { body: plan } = await client.call({ method: 'POST', path: `${path}/plan`, body: { root, files } })
  const missing = new Set(listAt(plan, 'missing').map(String))
  const archived = listAt(plan, 'archived')
  if (context.values.local['dry-run'] === true) {
    const unchanged = files.length - missing.size
    await printReply(context, { root, missing: [...missing], archived, unchanged, skipped }, 'wiki ingest')
    return skipped.length === 0 ? 0 : 1
  }
  const lacking = files.filter((file) => missing.has(file.path))
  const done = { created: 0, updated: 0, archived: 0, failed: [] as unknown[] }
  if (lacking.length > 0 || archived.length > 0)
    for await (const batch of batches(dir, { root, files, lacking, skipped })) await send(client, batch, done)
  const { failed, ...counts } = done
  const unchanged = files.length - counts.created - counts.updated - unsent(files, skipped)
  await printReply(context, { root, ...counts, unchanged, failed, skipped }, 'wiki ingest')
  return failed.length + skipped.length === 0 ? 0 : 1
}

/** Files that are listed for the server, though their texts could not be sent. */
function unsent(files: readonly SourceFile[], skipped: readonly Skipped[]): number {
  const paths = new Set(skipped.map((one) => one.path))
  return files.filter((file) => paths.has(file.path)).length
}

interface Sending {
  root: string
  files: readonly SourceFile[]
  lacking: readonly SourceFile[]
  /** Gets the files that cannot be sent. */
  skipped: Skipped[]
}

interface Batch {
  root: string
  files: readonly SourceFile[]
  pages: (SourceFile & { body: string })[]
  complete: boolean
}

/** Requests within the limit of the server. Each lists all files; the last one is complete. */
async function* batches(dir: string, { root, files, lacking, skipped }: Sending): AsyncGenerator<Batch> {
  const around = Buffer.byteLength(JSON.stringify({ root, files, pages: [], complete: false })) + 1
  let pages: Batch['pages'] = []
  let size = around
  for (const file of lacking) {
    const source = await readSource(dir, file)
    if (!('body' in source)) {
      skipped.push(source)
      continue
    }
    const page = { ...file, body: source.body }
    const pageSize = Buffer.byteLength(JSON.stringify(page)) + 1
    if (pages.length > 0 && (size + pageSize > maxIngestBytes || pages.length >= maxTexts)) {
      yield { root, files, pages, complete: false }
      pages = []
      size = around
    }
    pages.push(page)
    size += pageSize
  }
  yield { root, files, pages, complete: true }
}

async function send(
  client: Client,
  batch: Batch,
  done: { created: number; updated: number; archived: number; failed: unknown[] },
): Promise<void> {
  const { body } = await client.call({ method: 'POST', path, body: batch, isKeyed: true })
  for (const key of ['created', 'updated', 'archived'] as const) done[key] += Number(fieldAt(body, key) ?? 0)
  done.failed.push(...listAt(body, 'failed'))
}
