import { fieldAt, listAt, textAt } from './fields.ts'
import type { ApiCall, Client } from './http.ts'

/** The pages of a list, one after the other. */
export async function* pagesOf(client: Client, call: ApiCall): AsyncGenerator {
  let after: string | null = null
  for (;;) {
    const query: ApiCall['query'] = after === null ? call.query : { ...call.query, after }
    const { body } = await client.call({ ...call, query })
    yield body
    const next = textAt(body, 'nextCursor')
    // The same cursor twice would go on for ever.
    if (next === null || next === after || fieldAt(body, 'hasMore') === false) return
    after = next
  }
}

export async function* rowsOf(client: Client, call: ApiCall): AsyncGenerator {
  for await (const page of pagesOf(client, call)) yield* listAt(page, 'data')
}
