import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as later } from 'node:timers/promises'
import { tokenGroups } from '../../control-plane/search/tokens.ts'

/**
 * A model behind an OpenAI-compatible endpoint on loopback. Texts are near to each other when they have words in common, or
 * words that a test said to mean the same.
 */
export interface FakeEmbeddings {
  /** For SVC_EMBEDDINGS_URL. */
  url: string
  key: string
  dimensions: number
  /** What each of these words means, instead of itself. */
  meanings: Map<string, string>
  /** The texts of each request. */
  asked: string[][]
  /** Texts that have this are answered with `refusal`. */
  refused: string | null
  refusal: number
  /** Answers every request with this instead; `hang` answers none. */
  trouble: { status: number; text: string } | 'hang' | null
  stop(): Promise<void>
}

/** Settings of a server that asks this model. */
export const embeddingSettings = (model: FakeEmbeddings, name = 'fake-1') => ({
  SVC_EMBEDDINGS_URL: model.url,
  SVC_EMBEDDINGS_KEY: model.key,
  SVC_EMBEDDINGS_MODEL: name,
})

export async function startFakeEmbeddings(): Promise<FakeEmbeddings> {
  const stopped = new AbortController()
  const server = createServer((request, response) => {
    void answer(fake, { request, response, signal: stopped.signal }).catch((error: unknown) => {
      if (!stopped.signal.aborted) response.writeHead(500).end(String(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const fake: FakeEmbeddings = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    key: 'sk-loopback',
    dimensions: 96,
    meanings: new Map(),
    asked: [],
    refused: null,
    refusal: 400,
    trouble: null,
    stop: () =>
      new Promise((resolve) => {
        stopped.abort()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return fake
}

async function answer(
  fake: FakeEmbeddings,
  { request, response, signal }: { request: IncomingMessage; response: ServerResponse; signal: AbortSignal },
): Promise<void> {
  const { input } = (await json(request)) as { input: string[] }
  const send = (status: number, body: string) => response.writeHead(status).end(body)
  if (request.url !== '/v1/embeddings' || request.method !== 'POST') return void send(404, '{}')
  if (request.headers.authorization !== `Bearer ${fake.key}`) return void send(401, '{}')
  fake.asked.push(input)
  if (fake.trouble === 'hang') return later(60_000, undefined, { signal, ref: false })
  if (fake.trouble !== null) return void send(fake.trouble.status, fake.trouble.text)
  const { refused } = fake
  if (refused !== null && input.some((text) => text.includes(refused))) return void send(fake.refusal, '{}')
  const data = input.map((text, index) => ({ object: 'embedding', index, embedding: meant(fake, text) }))
  // In no order, as the interface allows.
  send(200, JSON.stringify({ object: 'list', data: data.toReversed(), usage: {} }))
}

/** The sum of directions, one for each word. */
function meant({ dimensions, meanings }: FakeEmbeddings, text: string): number[] {
  const sum = Array.from({ length: dimensions }, () => 0)
  for (const { tokens } of tokenGroups(text))
    for (const { text: word } of tokens) {
      let seed = Array.from(meanings.get(word) ?? word).reduce((hash, c) => (hash * 31 + c.codePointAt(0)!) >>> 0, 7)
      for (let i = 0; i < dimensions; i++) {
        seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
        sum[i]! += seed / 2 ** 31 - 1
      }
    }
  return sum
}
