/** A model that says what a text is about, behind an interface like that of OpenAI. */
export interface EmbeddingSettings {
  /** The address to which texts are sent. */
  url: string
  key: string | null
  model: string
}

/** `https://host`, `https://host/v1` and `https://host/v1/embeddings` name the same. */
export function endpointOf(url: string): string {
  const parsed = new URL(url)
  const path = parsed.pathname.replace(/\/+$/, '')
  parsed.pathname = path.endsWith('/embeddings') ? path : `${path === '' ? '/v1' : path}/embeddings`
  return parsed.href
}
