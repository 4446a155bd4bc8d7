import { hash } from 'node:crypto'
import { chunksOf, type BodyKind, type Chunk } from './chunks.ts'
import { pageWords, type PageWords } from './page-words.ts'

/** What is stored of a page. Made by `readForSearch`, which takes long for a large page and so may run in a thread. */
export interface Searchable {
  /** The title as its author wrote it. */
  caption: string
  words: PageWords
  chunks: readonly (Chunk & { digest: string })[]
  /** Of the body, in UTF-16 units. */
  size: number
}

export function readForSearch({ title, kind, body }: { title: string; kind: BodyKind; body: string }): Searchable {
  const { chunks, headings } = chunksOf(kind, body)
  return {
    caption: title,
    words: pageWords({ title, headings, body }),
    chunks: chunks.map((chunk) => ({ ...chunk, digest: digestOf(title, chunk) })),
    size: body.length,
  }
}

const digestOf = (title: string, { heading, text }: Chunk): string =>
  hash('sha256', JSON.stringify([title, heading, text]))
