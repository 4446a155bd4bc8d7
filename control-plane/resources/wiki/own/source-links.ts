import type { WikiPageId } from '../../../../shared/lib/ids.ts'
import { posix } from 'node:path'
import { isSourcePath, sourceKind } from '../../../../shared/lib/source-path.ts'
import { slugsOfFile } from './ingest-rules.ts'
import type { PageLink } from '../read-page.ts'

// Links in texts that come from files, as they lead from file to file: `guide.md`, `../a/b.md#part`, from the root `/top.md`.

/** The other files of its root to which the text of this file links. */
export const linkedFiles = (links: readonly PageLink[], path: string): string[] => [
  ...new Set(links.flatMap((link) => fileOf(link, path) ?? [])),
]

/** `pages`: ids by the paths of files that were ingested before. Of one that is yet to come the slug is known. */
export function withFileTargets(
  links: readonly PageLink[],
  { path, pages }: { path: string; pages: ReadonlyMap<string, WikiPageId> },
): PageLink[] {
  return links.map((link) => {
    const file = fileOf(link, path)
    if (file === null) return link
    const pageId = pages.get(file)
    return { ...link, target: pageId === undefined ? { slug: slugsOfFile(file)[0]! } : { pageId } }
  })
}

/** null: it leads elsewhere, or to a page. */
function fileOf({ url, target }: PageLink, from: string): string | null {
  if (target !== null) return null
  const written = /^[^?#]*/.exec(url)![0]
  // A scheme, or another host.
  if (/^[a-z][a-z\d+.-]*:|^\/\//i.test(written)) return null
  const given = decoded(written)
  const path = given.startsWith('/') ? posix.normalize(given.slice(1)) : posix.join(posix.dirname(from), given)
  return path !== from && isSourcePath(path) && sourceKind(path) !== null ? path : null
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
