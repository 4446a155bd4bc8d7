import { publishChecks, type PublishCheck } from '../../../../shared/api/wiki-fields.ts'
import type { BodyFlaw } from '../read-page.ts'

// Decisions about pages of the wiki.

/** About what reading a text costs a model. */
export const tokenCountOf = (sizeBytes: number): number => Math.ceil(sizeBytes / 4)

export interface PublishFlaw {
  check: PublishCheck
  message: string
}

export interface PublishFacts {
  /** The flaws of the body, whatever page it is for (`read-page.ts`). */
  bodyFlaws: readonly BodyFlaw[]
  sizeBytes: number
  /** The revision that is current; null on a page that was never published. */
  current: { id: string; sizeBytes: number } | null
  /** The revision that the writer changed, where they say it. */
  baseRevisionId: string | null
  allowShrink: boolean
  isArchived: boolean
}

/** Returns why a body is not published, in the order of `publishChecks`; empty: it is. */
export function publishFlaws(facts: PublishFacts): PublishFlaw[] {
  const { bodyFlaws, sizeBytes, current, baseRevisionId, allowShrink } = facts
  const flaws: PublishFlaw[] = [...bodyFlaws]
  if (baseRevisionId !== null && baseRevisionId !== current?.id)
    flaws.push({
      check: 'wiki_stale_base_revision',
      message: `The page was changed since ${baseRevisionId}: ${current?.id ?? 'none'} is current. Read it again.`,
    })
  if (!allowShrink && current !== null && sizeBytes * 10 < current.sizeBytes * 6)
    flaws.push({
      check: 'wiki_body_shrunk',
      message: `The body has ${sizeBytes} bytes, the current one ${current.sizeBytes}: that is less than 60 %. Send allowShrink if it is meant.`,
    })
  if (facts.isArchived)
    flaws.push({ check: 'wiki_publish_failed', message: 'The page is archived. A person unarchives it first.' })
  return flaws.toSorted((a, b) => publishChecks.indexOf(a.check) - publishChecks.indexOf(b.check))
}

/** Keeps the flaws that hold for a text which a person takes back: what it looks like is their decision. */
export const restoreFlaws = (flaws: readonly PublishFlaw[]): PublishFlaw[] =>
  flaws.filter(({ check }) => check === 'wiki_publish_failed')

/** Files say of an ingested page what its slug is and whether it is live. */
export function changesWhatFilesSay(
  page: { sourceRef: string | null; slug: string; archivedAt: number | null },
  { slug, archived }: { slug: string | undefined; archived: boolean | undefined },
): boolean {
  if (page.sourceRef === null) return false
  return (slug ?? page.slug) !== page.slug || (archived ?? page.archivedAt !== null) !== (page.archivedAt !== null)
}
