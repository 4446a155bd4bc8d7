import { sourceStem } from '../../../../shared/lib/source-path.ts'
import { asPageSlug, maxSlugLength, pageSlugOf } from '../../../../shared/lib/page-slug.ts'

// Decisions about pages that come from files.

export interface File {
  path: string
  sha256: string
}

/** The facts about a file that was ingested before. */
export interface Known {
  sha256: string
  archivedAt: number | null
}

/** Returns whether the page is live and has the file's text. */
export const isCurrent = (file: File, known: Known | undefined): boolean =>
  known !== undefined && known.sha256 === file.sha256 && known.archivedAt === null

/** Paths of live pages whose files are not listed any more. */
export function gone<Row extends Known & { path: string }>(known: readonly Row[], files: readonly File[]): Row[] {
  const listed = new Set(files.map(({ path }) => path))
  return known.filter(({ path, archivedAt }) => archivedAt === null && !listed.has(path))
}

const maxTitle = 300
/** A heading is cut before it is read: it may be the whole text. */
const maxHeading = 10 * maxTitle

/** The heading that names a text, else the name of its file. */
export function titleOfFile({ path, heading }: { path: string; heading: string | null }): string {
  const name = sourceStem(path).split('/').at(-1)!
  return [heading?.slice(0, maxHeading), name].map(asTitle).find((title) => title !== '') ?? 'Page'
}

const asTitle = (text = ''): string =>
  text
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, maxTitle)
    .replace(/[\ud800-\udbff]$/, '')
    .trim()

/** Slugs for the page of a file, the best one first. */
export function slugsOfFile(path: string): string[] {
  const made = asPageSlug(pageSlugOf(sourceStem(path).replaceAll(/[/.]/g, ' '))) ?? 'page'
  // The base is cut as the slug of a longer text is, within its length.
  const base = pageSlugOf(made.slice(0, maxSlugLength - 5))
  return [made, ...Array.from({ length: 98 }, (_, index) => `${base}-${index + 2}`)]
}
