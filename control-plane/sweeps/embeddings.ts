import type { EmbeddingFiller } from '../search/embeddings/filler.ts'
import type { Sweep } from './sweeper.ts'

/** Asks a model what texts are about that are new, where there is one. */
export function embeddingsSweep({
  filler,
  everyMs,
}: {
  filler: Pick<EmbeddingFiller, 'begin' | 'idle'>
  everyMs: number
}): Sweep {
  return {
    name: 'embeddings',
    everyMs,
    run: async () => filler.begin(),
    idle: () => filler.idle(),
  }
}
