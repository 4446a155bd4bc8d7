import type { Knex } from 'knex'
import type { World } from '../../../shared/lib/world.ts'
import type { Log } from '../../process/log.ts'
import { createEmbeddingClient } from './client.ts'
import { EmbeddingFiller } from './filler.ts'
import { Meaning } from './meaning.ts'
import type { EmbeddingSettings } from './settings.ts'

/** The uses of a model in a server; null where there is none. */
export interface Embeddings {
  meaning: Meaning | null
  filler: EmbeddingFiller | null
}

export function createEmbeddings(
  settings: EmbeddingSettings | null,
  common: { root: Knex; world: World; log: Log },
): Embeddings {
  if (settings === null) return { meaning: null, filler: null }
  const client = createEmbeddingClient(settings, common.world)
  return { meaning: new Meaning({ client, ...common }), filler: new EmbeddingFiller({ client, ...common }) }
}
