import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { ModelProvider } from '../../../shared/runs/brokered.ts'

// The requests that a sandbox may make to a provider of models: for models, and nothing else that a key opens. With the operator's key the files, batches
// and stored answers of others would lie open.

type Endpoint = readonly [method: string, path: RegExp]

const model = /^\/v1\/models(?:\/(?!\.)[\w.:-]{1,200})?$/
const endpoints: Readonly<Record<ModelProvider, readonly Endpoint[]>> = {
  anthropic: [
    ['POST', /^\/v1\/messages(?:\/count_tokens)?$/],
    ['GET', model],
  ],
  openai: [
    ['POST', /^\/v1\/(?:responses(?:\/compact)?|chat\/completions)$/],
    ['GET', model],
  ],
}

/** The address to ask; null: the sandbox may not ask this. `target`: what stands behind the path of the provider. */
export function addressOf(
  { provider, url: base }: { provider: ModelProvider; url: string },
  { method, target }: { method: string; target: string },
): URL | null {
  const [path = '', query = '', ...more] = target.split('?')
  const isKnown = endpoints[provider].some(([verb, form]) => verb === method && form.test(path))
  if (!isKnown || more.length > 0 || !/^[\w=&.%~-]{0,2000}$/.test(query)) return null
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/+$/, '') + path
  url.search = query
  return url
}

/**
 * Headers that say how to read a request. All others, above all those that name a key, an account or a connection, are the sandbox's own
 * affair.
 */
const passed =
  /^(?:accept|content-type|content-encoding|user-agent|anthropic-(?:version|beta)|openai-beta|originator|version|session[_-]id|conversation_id|x-app|x-(?:stainless|codex)-[a-z-]{1,60})$/

export function headersTo(
  url: URL,
  request: IncomingMessage,
  key: { value: string; header: 'bearer' | 'x-api-key' },
): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { host: url.host }
  for (const [name, value] of Object.entries(request.headers)) if (passed.test(name)) headers[name] = value
  // A packed answer could hold the key unseen.
  headers['accept-encoding'] = 'identity'
  if (key.header === 'bearer') headers['authorization'] = `Bearer ${key.value}`
  else headers['x-api-key'] = key.value
  return headers
}

const kept = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|set-cookie2?|location|alt-svc)$/

/** The head of the answer as the sandbox gets it; null: it holds the key. */
export function headersFrom({ headers }: IncomingMessage, key: string): OutgoingHttpHeaders | null {
  const entries = Object.entries(headers).filter(([name]) => !kept.test(name))
  return JSON.stringify(entries).includes(JSON.stringify(key).slice(1, -1)) ? null : Object.fromEntries(entries)
}
