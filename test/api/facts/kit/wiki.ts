import type { TestServer } from '../../../kit/server.ts'

// Pages of the wiki as facts and tests make them.

export async function makePage(
  { server }: { server: TestServer },
  body: Record<string, unknown> = {},
  token?: string,
  // oxlint-disable-next-line typescript/no-explicit-any
): Promise<any> {
  const sent = { title: `Page ${server.world.uuid()}`, body: 'Some words.\n', ...body }
  return server.ok('/wiki/pages', { body: sent, ...(token === undefined ? {} : { token }) })
}

/** Says of a page that it comes from a file. */
export async function makeIngested(server: TestServer, id: string): Promise<void> {
  await server.database.root('wiki_pages').where({ id }).update({ source_ref: 'docs/page.md' })
}
