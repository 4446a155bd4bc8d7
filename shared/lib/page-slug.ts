// Slugs of wiki pages: letters, digits and marks of every script in lower case, `-` and `_`.

export const maxSlugLength = 200
const notOfSlug = /[^\p{L}\p{M}\p{N}_-]/gu
/** A text of this form names the page that has the id. */
const idForm = /^wik_[0-9A-Za-z]{16}$/

const lower = (text: string) => text.normalize('NFC').toLowerCase().normalize('NFC')

/** The slug that a title gives: runs of spaces become one `-`, other characters are dropped. May be empty. */
export function pageSlugOf(title: string): string {
  const slug = lower(title.trim().replaceAll(/\s+/g, '-')).replaceAll(notOfSlug, '').normalize('NFC')
  if (slug.length <= maxSlugLength) return slug
  let cut = ''
  for (const character of slug) {
    if (cut.length + character.length > maxSlugLength) break
    cut += character
  }
  return cut
}

/** The text as a slug, when it is one but for its case and its Unicode form; null otherwise. */
export function asPageSlug(text: string): string | null {
  // A character takes four units at most while it is taken apart. A long row of marks takes minutes to put in order.
  if (text.length > 4 * maxSlugLength) return null
  const slug = lower(text)
  const isSlug = slug !== '' && slug.length <= maxSlugLength && slug.search(notOfSlug) === -1
  return isSlug && !idForm.test(slug) ? slug : null
}
