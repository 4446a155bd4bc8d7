import { readStream, type OpenStream } from './event-stream.ts'
import type { TestServer } from './server.ts'

/** A person's turn in a conversation, read message by message. */
export async function openTurn(
  server: TestServer,
  conversationId: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<OpenStream> {
  return readStream(`${server.nextUrl()}/api/v1/conversations/${conversationId}/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.owner.token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}
