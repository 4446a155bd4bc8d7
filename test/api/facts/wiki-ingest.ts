import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { maxIngestBytes } from '../../../shared/lib/wiki-limits.ts'
import { on, post } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

/** A file as it is ingested. */
export const textOf = (path: string, body: string) => ({
  path,
  sha256: createHash('sha256').update(body).digest('hex'),
  body,
})

const routes = { 'wiki.ingest.plan': '/wiki/ingest/plan', 'wiki.ingest.run': '/wiki/ingest' } as const
const paths = Object.entries(routes)
const lists = { 'wiki.ingest.plan': { files: [] }, 'wiki.ingest.run': { pages: [] } } as const

export const wikiIngestFacts: ResourceFacts = {
  requests: {
    'wiki.ingest.plan': () => ({ body: { root: 'docs', files: [] } }),
    'wiki.ingest.run': ({ server }) => ({
      body: { root: `docs-${server.world.uuid()}`, pages: [textOf('a.md', '# A page')] },
    }),
  },
  codes: paths.flatMap(([route, path]) => [
    on(route, '400 wiki_ingest_request_too_large', ({ server }) =>
      server.call(path, post({ root: 'x'.repeat(maxIngestBytes), ...lists[route as keyof typeof lists] })),
    ),
    on(route, '400 wiki_ingest_invalid_root', ({ server }) =>
      server.call(path, post({ root: '../up', ...lists[route as keyof typeof lists] })),
    ),
  ]),
  withoutCommand: { 'wiki.ingest.plan': '`svc wiki ingest` asks for it.' },
  unknownIds: {},
  named: { root: fc.constantFrom('docs', '/etc', '../up') },
}
