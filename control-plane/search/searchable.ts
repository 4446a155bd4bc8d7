import { chunksOf, type BodyKind, type Chunk } from './chunks.ts'
import { bodyWords, type BodyWords } from './page-words.ts'

/**
 * The parts that are stored of a text so that it is found. Making them takes long for a large text, so a thread does it; hence it is flat.
 */
export interface Searchable {
  words: BodyWords
  chunks: Chunk[]
  /** The size of the body, in UTF-16 units. */
  size: number
}

export function readForSearch({ kind, body }: { kind: BodyKind; body: string }): Searchable {
  const { chunks, headings } = chunksOf(kind, body)
  return { words: bodyWords({ headings, body }), chunks, size: body.length }
}
