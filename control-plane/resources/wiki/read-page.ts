import createMarkdown, { type MarkdownIt, type StateInline, type Token } from 'markdown-it'
import { maxLinkChars, maxPageLinks, type PageKind, type PublishCheck } from '../../../shared/api/wiki-fields.ts'
import { pageSlugOf } from '../../../shared/lib/page-slug.ts'
import { readForSearch, type Searchable } from '../../search/searchable.ts'
import { findCsvFlaw } from './own/csv.ts'
import { linkTargetOf, type LinkTarget } from './own/link-target.ts'

// Reads what must be known of a body before it is published. The cost grows with the text, so a worker does it
// (`control-plane/costly`).

export interface PageLink {
  url: string
  text: string
  target: LinkTarget
}

/** A check that the body does not pass, whatever page it is for. */
export interface BodyFlaw {
  check: Extract<PublishCheck, 'wiki_body_truncated' | 'wiki_citation_style' | 'wiki_publish_failed'>
  message: string
}

export interface PageReading {
  /** The links in the order of the body; each URL once. */
  links: PageLink[]
  flaws: BodyFlaw[]
  /** The first heading of the first level, which names the text; null when there is none. */
  heading: string | null
  /** The text by which the page is found. */
  searchable: Searchable
}

export function readPage(page: { kind: PageKind; body: string }): PageReading {
  return { ...check(page), searchable: readForSearch(page) }
}

function check({ kind, body }: { kind: PageKind; body: string }): Omit<PageReading, 'searchable'> {
  const flaws: BodyFlaw[] = []
  // A single digit is enough; a run of them would be tried from each of its digits.
  const cut = /\d tokens truncated/i.exec(body)
  if (cut !== null)
    flaws.push({ check: 'wiki_body_truncated', message: `The body says "${cut[0]}": it is not the whole text.` })
  if (kind === 'csv') {
    const flaw = findCsvFlaw(body)
    if (flaw !== null)
      flaws.push({ check: 'wiki_publish_failed', message: `The body is no CSV: line ${flaw.line}: ${flaw.message}.` })
    return { links: [], flaws, heading: null }
  }
  const { links, citation, section, heading } = readMarkdown(body)
  const found = [
    ...(citation === null ? [] : [`the numbered citation ${citation}`]),
    ...(section === null ? [] : [`the section "${section}"`]),
  ]
  if (found.length > 0)
    flaws.push({
      check: 'wiki_citation_style',
      message: `The body has ${found.join(' and ')}. Cite with a link where the citation belongs: [what it says](https://...).`,
    })
  return { links, flaws, heading }
}

/** `[1]`, `[2, 3]`, `[4-6]`, `[^7]`, defined or not; `[1](url)` is a link like any other. */
const numbered = /\[\^?\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,20}\](?!\(|\[(?!\^?\d))/y
/** `[[Page]]`, `[[page|as it is called]]` */
const pageLink = /\[\[([^[\]|\n]{1,300})(?:\|([^[\]\n]{1,300}))?\]\](?!\()/y

const markdown = makeMarkdown()

function makeMarkdown(): MarkdownIt {
  // The rules that are turned off neither make nor hide a link, and tables make many tokens.
  const md = createMarkdown({ html: false }).disable(['table', 'strikethrough', 'emphasis'])
  md.normalizeLink = (url) => url
  md.inline.ruler.before('link', 'wiki_citation', (state, isSilent) =>
    take(state, numbered, (match) => {
      if (!isSilent) state.push('wiki_citation', '', 0).content = match[0]
    }),
  )
  md.inline.ruler.before('wiki_citation', 'wiki_link', (state, isSilent) =>
    take(state, pageLink, (match) => {
      if (isSilent) return
      const token = state.push('wiki_link', '', 0)
      token.content = match[2] ?? match[1]!
      token.info = match[1]!
    }),
  )
  return md
}

function take(state: StateInline, pattern: RegExp, found: (match: RegExpExecArray) => void): boolean {
  pattern.lastIndex = state.pos
  const match = pattern.exec(state.src)
  if (match === null || pattern.lastIndex > state.posMax) return false
  const end = pattern.lastIndex
  found(match)
  state.pos = end
  return true
}

interface Found {
  links: PageLink[]
  citation: string | null
  section: string | null
  heading: string | null
}

function readMarkdown(body: string): Found {
  const found: Found = { links: [], citation: null, section: null, heading: null }
  const links = new Map<string, PageLink>()
  let before: Token | null = null
  // A byte order mark would hide the heading behind it.
  for (const token of markdown.parse(body.replace(/^\uFEFF/, ''), {})) {
    if (token.type === 'inline') {
      if (before?.type === 'heading_open') {
        found.section ??= sourcesHeading(token.content)
        // A heading within a quotation or a list names no text.
        if (before.tag === 'h1' && before.level === 0 && token.content !== '') found.heading ??= token.content
      }
      readInline(token.children ?? [], found, (url, text) => addLink(links, url, text))
    }
    before = token
  }
  return { ...found, links: [...links.values()] }
}

/** A heading under which sources are listed. */
function sourcesHeading(text: string): string | null {
  const words = text.replaceAll(/[*_:]/g, ' ').trim()
  return /^(?:\d{1,3}[.)]?\s+)?(?:sources|references)$/i.test(words) ? words : null
}

function readInline(tokens: readonly Token[], found: Found, add: (url: string, text: string) => void): void {
  let open: { url: string; text: string } | null = null
  for (const token of tokens) {
    const { type, content } = token
    if (type === 'wiki_citation') found.citation ??= content
    if (type === 'wiki_link') {
      const slug = pageSlugOf(token.info)
      if (slug !== '') add(`/wiki/${slug}`, content)
    }
    if (type === 'link_open') open = { url: String(token.attrGet('href') ?? ''), text: '' }
    else if (type === 'link_close' && open !== null) {
      add(open.url, open.text)
      open = null
    } else if (open !== null) open.text += content
    else if (type === 'text') for (const url of bareUrls(content)) add(url, url)
  }
}

/** URLs that are written without any mark; what ends a sentence is none of theirs. */
function* bareUrls(text: string): Generator<string> {
  for (const [match] of text.matchAll(/\bhttps?:\/\/[^\s<>"'`[\]()]{1,2048}/gi))
    yield match.replace(/[.,;:!?*_]{1,20}$/, '')
}

function addLink(links: Map<string, PageLink>, url: string, text: string): void {
  // A link without a path is to a place in the page itself.
  if (url === '' || url.startsWith('#') || url.length > maxLinkChars) return
  if (links.has(url) || links.size >= maxPageLinks) return
  const shown = text.trim().replaceAll(/\s+/g, ' ')
  links.set(url, { url, text: beginning(shown), target: linkTargetOf(url) })
}

const shownText = 200
const beginning = (text: string): string =>
  text.length <= shownText ? text : text.slice(0, shownText).replace(/[\uD800-\uDBFF]$/, '')
