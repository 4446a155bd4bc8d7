import { idFrom, type WikiPageId } from '../../../../shared/lib/ids.ts'
import { wikiPageId } from '../../../../shared/api/ids.ts'
import { asPageSlug } from '../../../../shared/lib/page-slug.ts'

/** The page that a link names, by its id or by its slug; null when it leads elsewhere. */
export type LinkTarget = { pageId: WikiPageId } | { slug: string } | null

/**
 * Reads the target of a link as it is written: `slug`, `/wiki/slug`, `/wiki/<id>`, `pinework://wiki_page/<id>`. A part of a page
 * (`#...`) and a query are left aside.
 */
export function linkTargetOf(url: string): LinkTarget {
  const path = /^[^?#]*/.exec(url)![0]
  const inWiki = /^(?:pinework:\/\/wiki_page\/|\/wiki\/)([^/]+)\/?$/i.exec(path)?.[1]
  const reference = decoded(inWiki ?? path)
  if (inWiki !== undefined && wikiPageId.safeParse(reference).success) return { pageId: idFrom(reference) }
  const slug = asPageSlug(reference)
  return slug === null ? null : { slug }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
