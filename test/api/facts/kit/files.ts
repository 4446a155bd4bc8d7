import type { TestServer } from '../../../kit/server.ts'

// Files as facts of several resources make them.

export const inBase64 = (text: string): string => Buffer.from(text).toString('base64')

export async function makeFile(
  { server }: { server: TestServer },
  body: Record<string, unknown> = {},
  token?: string,
  // oxlint-disable-next-line typescript/no-explicit-any
): Promise<any> {
  const sent = { name: 'notes.txt', contentBase64: inBase64('Some notes.'), ...body }
  return server.ok('/files', { body: sent, ...(token === undefined ? {} : { token }) })
}
