import { createHash } from 'node:crypto'
import { ApiError, fail } from '../../../../shared/api/errors.ts'
import type { PublishCheck } from '../../../../shared/api/wiki-fields.ts'
import { wikiIngestRoutes } from '../../../../shared/api/wiki-ingest.ts'
import { isSourcePath, sourceKind } from '../../../../shared/lib/source-path.ts'
import {
  type BeforeInput,
  type HandlerInput,
  implement,
  type ImplementedRoute,
  prepared,
} from '../../../http/implement.ts'
import { readForSearch } from '../../../search/searchable.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { gone, isCurrent } from '../own/ingest-rules.ts'
import type { PageReading } from '../read-page.ts'
import { listSources, type ListedSource } from '../own/source-store.ts'
import { changePage, type Revived } from '../steps/own/page.ts'
import { ingestFile, type FileText } from '../steps/own/ingest.ts'
import { findPage, listPagesByIds } from '../store.ts'
import { authorOf } from './author.ts'
import { readingOf } from './reading.ts'
import { revivedOf } from './revive.ts'

/**
 * Directories of files whose pages follow them. Each request says which files there are, and brings some of their texts; only the
 * last one archives what is gone, so a client that is cut off in between loses nothing.
 */
type Run = (typeof wikiIngestRoutes)['run']
type Dependencies = Pick<ResourceDependencies, 'costly'>
/**
 * The readings by the paths of their files. `revived`: what readers see of an archived page whose file has come back with a text that is
 * not published.
 */
type Readings = ReadonlyMap<string, { reading: PageReading; revived: Revived | null }>

export function wikiIngestHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(wikiIngestRoutes, {
    async plan({ db, caller: { workspaceId }, body: { root, files } }) {
      checkRoot(root)
      const sources = await listSources(db, { workspaceId, root })
      const known = byPath(sources)
      return {
        missing: files.filter((file) => !isCurrent(file, known.get(file.path))).map(({ path }) => path),
        archived: gone(sources, files).map(({ path }) => path),
      }
    },

    run: prepared<Run, Readings>({ before: (input) => readTexts(input, deps), handle: run }),
  })
}

function checkRoot(root: string): void {
  if (!isSourcePath(root)) fail('wiki_ingest_invalid_root', { param: 'root' })
}

const byPath = (sources: readonly ListedSource[]): ReadonlyMap<string, ListedSource> =>
  new Map(sources.map((source) => [source.path, source]))

const hasText = (page: Omit<FileText, 'body'> & { body?: string | undefined }): page is FileText =>
  page.body !== undefined

/** Texts that the server lacks, as it is now. */
async function textsToBring({ db, caller: { workspaceId }, body: { root, pages } }: BeforeInput<Run>) {
  const sources = await listSources(db, { workspaceId, root })
  const known = byPath(sources)
  return { sources, known, texts: pages.filter(hasText).filter((file) => !isCurrent(file, known.get(file.path))) }
}

async function readTexts(input: BeforeInput<Run>, deps: Dependencies): Promise<Readings> {
  const { root, pages, files } = input.body
  checkRoot(root)
  const listed = files && new Map(files.map(({ path, sha256 }) => [path, sha256]))
  for (const [index, page] of pages.entries()) {
    if (listed !== undefined && listed.get(page.path) !== page.sha256)
      refuse(index, 'path', 'is not listed in files with this sha256.')
    if (page.body !== undefined && createHash('sha256').update(page.body).digest('hex') !== page.sha256)
      refuse(index, 'sha256', 'is not that of the body.')
  }
  const { known, texts } = await textsToBring(input)
  const readings: Map<string, { reading: PageReading; revived: Revived | null }> = new Map()
  for (const { path, body } of texts) {
    const reading = await readFile(input, { path, body }, deps)
    const revived = reading.flaws.length === 0 ? null : await readToRevive(input, known.get(path), deps)
    readings.set(path, { reading, revived })
  }
  return readings
}

async function readToRevive(
  { db, caller }: BeforeInput<Run>,
  source: ListedSource | undefined,
  deps: Dependencies,
): Promise<Revived | null> {
  if (source === undefined || source.archivedAt === null) return null
  const page = await findPage(db, caller.workspaceId, source.pageId)
  return page === null ? null : revivedOf(db, page, { caller, ...deps })
}

function refuse(index: number, key: string, what: string): never {
  const param = `pages.${index}.${key}`
  return fail('validation_error', { param, message: `${param} ${what}` })
}

/** A text that cannot be read is kept like one that fails a check. */
async function readFile(
  { caller }: BeforeInput<Run>,
  { path, body }: { path: string; body: string },
  deps: Dependencies,
): Promise<PageReading> {
  const kind = sourceKind(path) ?? 'markdown'
  try {
    return await readingOf({ kind, body }, { caller, ...deps })
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'wiki_publish_failed')) throw error
    const searchable = readForSearch({ kind, body: '' })
    const flaws = [{ check: 'wiki_publish_failed' as const, message: error.message }]
    return { links: [], flaws, heading: null, searchable }
  }
}

async function run(input: HandlerInput<Run>, readings: Readings) {
  const { db, caller, world, body } = input
  const { workspaceId } = caller
  const { root, pages, files = pages, complete = body.files === undefined } = body
  const { sources, known, texts } = await textsToBring(input)
  const { author } = await authorOf(db, caller)
  const failed: { path: string; checks: PublishCheck[] }[] = []
  for (const file of texts) {
    const read = readings.get(file.path)
    // Another ingest changed what there is since this one looked.
    if (read === undefined) return fail('transient_conflict')
    const about = { workspaceId, root, file, known: known.get(file.path), ...read, author }
    const checks = await ingestFile(db, about, world)
    if (checks.length > 0) failed.push({ path: file.path, checks })
  }
  const brought = new Set(texts.map(({ path }) => path))
  const created = texts.filter(({ path }) => !known.has(path)).length
  const isThere = (file: { path: string; sha256: string }) => isCurrent(file, known.get(file.path))
  return {
    created,
    updated: texts.length - created,
    archived: complete ? await archive(input, gone(sources, files)) : 0,
    unchanged: files.filter(isThere).length,
    missing: files.filter((file) => !isThere(file) && !brought.has(file.path)).map(({ path }) => path),
    failed,
  }
}

async function archive({ db, caller, world }: HandlerInput<Run>, sources: readonly ListedSource[]): Promise<number> {
  const ids = sources.map(({ pageId }) => pageId)
  const pages = await listPagesByIds(db, { workspaceId: caller.workspaceId, ids })
  for (const page of pages) await changePage(db, page, { archived: true }, world)
  return pages.length
}
