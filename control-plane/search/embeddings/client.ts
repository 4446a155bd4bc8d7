import { withCertificateTrouble } from '../../../shared/lib/certificate-trouble.ts'
import { z } from 'zod'
import type { World } from '../../../shared/lib/world.ts'
import { readAnswer } from '../../../shared/lib/read-answer.ts'
import type { EmbeddingSettings } from './settings.ts'
import { normalized } from './vectors.ts'

/** Asks the model what texts are about. Fails with EmbeddingTrouble; never takes longer or reads more than it says. */
export interface EmbeddingClient {
  readonly model: string
  /** A vector for each text, in their order; all of one length. */
  embed(texts: readonly string[], limits: { timeoutMs: number; signal?: AbortSignal }): Promise<Float32Array[]>
}

export class EmbeddingTrouble extends Error {
  override name = 'EmbeddingTrouble'
  /**
   * `refused`: the endpoint does not take these texts, and never will. `failed`: it is there, and its answer is none; it may fail at
   * one of these texts or at all. `away`: it cannot be used at present.
   */
  readonly kind: 'refused' | 'failed' | 'away'

  constructor(message: string, options: ErrorOptions & { kind?: EmbeddingTrouble['kind'] } = {}) {
    super(message, options)
    this.kind = options.kind ?? 'away'
  }
}

const maxDimensions = 8_192
const replyBytes = 16 * 1024 * 1024

export function createEmbeddingClient(settings: EmbeddingSettings, world: Pick<World, 'after'>): EmbeddingClient {
  return {
    model: settings.model,
    async embed(texts, { timeoutMs, signal }) {
      const ending = new AbortController()
      const cancel = world.after(timeoutMs, () => ending.abort())
      try {
        return read(await send(settings, texts, AbortSignal.any([ending.signal, ...(signal ? [signal] : [])])), texts)
      } catch (error) {
        if (error instanceof EmbeddingTrouble) throw error
        throw new EmbeddingTrouble(withCertificateTrouble('the endpoint could not be reached in time', error), {
          cause: error,
        })
      } finally {
        cancel()
      }
    },
  }
}

async function send({ url, key, model }: EmbeddingSettings, input: readonly string[], signal: AbortSignal) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      'content-type': 'application/json',
      'user-agent': 'svc-server',
      ...(key !== null && { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify({ model, input, encoding_format: 'float' }),
    // The key goes to nobody else.
    redirect: 'error',
    signal,
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new EmbeddingTrouble(`the endpoint answered ${response.status}`, { kind: kindOf(response.status) })
  }
  return readText(response)
}

/**
 * Returns the kind of trouble for a status. Some servers answer 500 to a text that is too long for their model, or of which it makes no
 * numbers.
 */
function kindOf(status: number): EmbeddingTrouble['kind'] {
  if ([400, 413, 422].includes(status)) return 'refused'
  return status === 500 ? 'failed' : 'away'
}

const tooLarge = () => new EmbeddingTrouble('the answer is too large')
const readText = async (response: Response): Promise<string> =>
  (await readAnswer(response, replyBytes, tooLarge)).toString('utf8')

const reply = z.object({
  data: z.array(z.object({ index: z.number().int().min(0), embedding: z.array(z.number()).min(1).max(maxDimensions) })),
})

function read(text: string, texts: readonly string[]): Float32Array[] {
  const kind = 'failed'
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new EmbeddingTrouble('the answer is no JSON', { kind, cause: error })
  }
  const parsed = reply.safeParse(value)
  if (!parsed.success) throw new EmbeddingTrouble('the answer does not fit', { kind, cause: parsed.error })
  const vectors = new Map(parsed.data.data.map(({ index, embedding }) => [index, normalized(embedding)]))
  const inOrder = texts.map((_, index) => vectors.get(index))
  const [first] = inOrder
  return inOrder.map((vector) => {
    if (vector === undefined || parsed.data.data.length !== texts.length)
      throw new EmbeddingTrouble('the answer has not one vector for each text', { kind })
    if (vector.length !== first?.length) throw new EmbeddingTrouble('the vectors are of different lengths', { kind })
    if (!vector.every(Number.isFinite)) throw new EmbeddingTrouble('a vector has numbers out of range', { kind })
    return vector
  })
}
