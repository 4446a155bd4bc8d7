import { idFrom } from '../../shared/lib/ids.ts'
import { join } from 'node:path'
import { migrate } from '../../control-plane/db/migrate.ts'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { readQuery, type SearchQuery } from '../../control-plane/search/query.ts'
import { readForSearch } from '../../control-plane/search/searchable.ts'
import { search as find } from '../../control-plane/search/search.ts'
import { indexSubject } from '../../control-plane/search/store.ts'
import { seedWorkspace } from '../../test/store/seed.ts'
import type { Bench } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { size } from './sizes.ts'

const pages = size(10_000, 50)
const chunksOfPage = 5
const searches = size(200, 5)

/** What people would have without our ranking: each chunk a row of the database's own index, ranked by its own function. */
export const search: Bench = {
  name: 'search',
  about: `a search over ${(pages * chunksOfPage).toLocaleString('en')} chunks, against the bare index query over the same`,
  async run(context) {
    const postgres = await context.postgres()
    const urls = [join(context.scratch, 'search.db'), ...(postgres === null ? [] : [postgres.url])]
    const results: Result[] = []
    for (const url of urls) {
      const database = openDatabase({ url })
      try {
        const workspaceId = await fill(database)
        const round = (ask: (text: string, query: SearchQuery) => Promise<unknown>) => () => latencies(ask)
        const result = await compare({
          name: `search, ${database.dialect}`,
          unit: 'ms',
          peerIs: database.dialect === 'sqlite' ? 'FTS5 and bm25' : 'tsvector and ts_rank',
          rounds: context.rounds,
          ours: round((text) => find(database.root, { workspaceId: idFrom(workspaceId), text, meaning: null })),
          peer: round((_, query) => askBare(database, query)),
        })
        // The goal is one of the 95th percentile.
        results.push({ ...result, target: atMost(1.5), met: result.ratioP95 <= 1.5 })
      } finally {
        await database.close()
      }
    }
    return results
  },
}

async function fill(database: Database): Promise<string> {
  const { root } = database
  await migrate(root, 1)
  const workspaceId = await seedWorkspace(root)
  const random = randomFrom(1)
  for (let from = 0; from < pages; from += 100)
    await root.transaction(async (tx) => {
      for (let i = from; i < from + 100; i++) {
        const subject = `page-${i}`
        const title = words(random, 3)
        const sections = Array.from({ length: chunksOfPage }, () => `# ${words(random, 2)}\n\n${words(random, 90)}\n`)
        const text = readForSearch({ kind: 'markdown', body: sections.join('\n') })
        await indexSubject(tx, { workspaceId, subject: idFrom(subject), title }, text)
      }
    })
  await fillBare(database)
  return workspaceId
}

async function fillBare({ root, dialect }: Database): Promise<void> {
  const from = 'from search_chunks c join search_pages p on p.subject = c.subject'
  if (dialect === 'sqlite') {
    await root.raw('create virtual table bare using fts5(title, heading, body)')
    await root.raw(`insert into bare (rowid, title, heading, body) select c.id, p.caption, c.heading, c.body ${from}`)
    return
  }
  const weighted = (text: string, weight: string) => `setweight(to_tsvector('simple', ${text}), '${weight}')`
  await root.raw('create table bare (id bigint primary key, words tsvector not null)')
  await root.raw(
    `insert into bare select c.id, ${weighted('p.caption', 'A')} || ${weighted('c.heading', 'B')} || ${weighted('c.body', 'C')} ${from}`,
  )
  await root.raw('create index bare_words on bare using gin (words)')
  await root.raw('vacuum analyze')
}

async function askBare({ root, dialect }: Database, { items }: SearchQuery): Promise<unknown> {
  const asked = items.flatMap((item) => item.words)
  if (dialect === 'sqlite') {
    const match = asked.map(({ text, isPrefix }) => `"${text}"${isPrefix ? '*' : ''}`).join(' ')
    return root.raw('select rowid from bare where bare match ? order by bm25(bare, 6, 2, 1) limit 200', [match])
  }
  const match = asked.map(({ text, isPrefix }) => `'${text}'${isPrefix ? ':*' : ''}`).join(' & ')
  return root.raw(
    `select id from bare, to_tsquery('simple', ?) query where words @@ query order by ts_rank(words, query) desc limit 200`,
    [match],
  )
}

/** One or two words as they come, the last one begun: most are rare, some are in most pages. */
async function latencies(ask: (text: string, query: SearchQuery) => Promise<unknown>): Promise<number[]> {
  const random = randomFrom(2)
  const samples: number[] = []
  for (let i = 0; i < searches; i++) {
    const text = words(random, 1 + (i % 2)).slice(0, i % 4 === 3 ? -1 : undefined)
    const query = readQuery(text)
    if (query === null) continue
    const start = performance.now()
    await ask(text, query)
    samples.push(performance.now() - start)
  }
  return samples
}

/** Words as often as in a language: few are frequent, most are rare. */
function words(random: () => number, count: number): string {
  return Array.from({ length: count }, () => `w${Math.floor(random() ** 3 * 20_000).toString(36)}`).join(' ')
}

function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
