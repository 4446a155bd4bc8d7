import { Agent } from 'node:http'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { encodeCursor } from '../../shared/lib/cursor.ts'
import { startS3 } from '../../test/kit/s3.ts'
import type { Bench, Context } from './context.ts'
import { download, fileBytes, fileText, startFilePeer, timed, upload, uploadBody } from './file-calls.ts'
import { loadOfUploads } from './file-load.ts'
import { bornAt } from './many-runs.ts'
import { atMost, compare, quantile, type Result } from './measure.ts'
import { pageLatencies } from './page-latency.ts'
import { startServer, type BenchServer } from './stack.ts'
import { size } from './sizes.ts'

const few = size(10_000, 100)
/** The pages of a list that are asked for in a round. */
const pages = size(500, 50)

export const files: Bench = {
  name: 'files',
  about: 'uploads and downloads of 50 MB, what eight uploads at once cost, and lists of many files',
  async run(context) {
    const results = await oneByOne(context)
    const bucket = await startS3(join(context.scratch, 's3'))
    try {
      results.push(...(await loadOfUploads(context, { name: 'disk', env: {} })))
      const env = { SVC_FILES_URL: bucket.url, ...bucket.environment }
      results.push(...(await loadOfUploads(context, { name: 'S3', env })))
    } finally {
      await bucket.close()
    }
    results.push(...(await listsOf(context, context.large ? 1_000_000 : size(100_000, 1_000))))
    return results
  },
}

async function oneByOne(context: Context): Promise<Result[]> {
  const server = await startServer(context, { name: 'files' })
  const peer = await startFilePeer(context)
  const agent = new Agent({ keepAlive: true })
  const body = uploadBody('one.bin')
  const { url, token } = server
  const uploadOurs = () => upload({ agent, url: `${url}/api/v1/files`, token, body })
  const uploadPeer = () => upload({ agent, url: peer.url, body })
  try {
    const [{ id }, { path }] = [await uploadOurs(), await uploadPeer()]
    const { url: signed } = await server.call<{ url: string }>('GET', `/files/${id}/download`)
    const counted = async (from: string) => {
      const length = await download(agent, from)
      if (length !== fileBytes) throw new Error(`${from} gave ${length} bytes`)
    }
    const peerFile = `${peer.url}/${encodeURIComponent(path)}`
    await counted(signed)
    await counted(peerFile)
    const several = async (work: () => Promise<unknown>) => [await timed(work), await timed(work), await timed(work)]
    const { rounds } = context
    return [
      await compare({
        name: `upload of ${fileText}`,
        unit: 'ms',
        peerIs: 'a bare server that decodes, hashes, writes and syncs it',
        target: atMost(1.5),
        rounds,
        ours: () => several(uploadOurs),
        peer: () => several(uploadPeer),
      }),
      await compare({
        name: `download of ${fileText}`,
        unit: 'ms',
        peerIs: 'a bare stream of a file',
        target: atMost(1.3),
        rounds,
        ours: () => several(() => counted(signed)),
        peer: () => several(() => counted(peerFile)),
      }),
    ]
  } finally {
    agent.destroy()
    await peer.end()
    await server.end()
  }
}

async function listsOf(context: Context, many: number): Promise<Result[]> {
  const small = await serverWithFiles(context, few)
  const large = await serverWithFiles(context, many)
  try {
    const [manyText, fewText] = [many.toLocaleString('en'), few.toLocaleString('en')]
    const results: Result[] = []
    for (const [name, path] of [
      ['first page', () => '/files?limit=50'],
      ['page in the middle', middle],
    ] as const)
      results.push(
        await compare({
          name: `GET /files p99, ${name}, ${manyText} to ${fewText} files`,
          unit: 'ms',
          peerIs: `${fewText} files`,
          target: atMost(1.1),
          rounds: context.rounds,
          ours: () => p99(large, () => path(many)),
          peer: () => p99(small, () => path(few)),
        }),
      )
    return results
  } finally {
    await small.end()
    await large.end()
  }
}

/** A page that begins at a file anywhere in the list. */
function middle(count: number): string {
  const at = 100 + Math.floor(Math.random() * (count - 200))
  return `/files?limit=50&cursor=${encodeCursor([bornAt + at * 1000, 'file_zzzzzzzzzzzzzzzz'])}`
}

async function p99(server: BenchServer, path: () => string): Promise<number[]> {
  return [quantile(await pageLatencies(server, path, pages), 0.99)]
}

/** A server on SQLite with this many rows of files, whose bytes nobody asks for. */
async function serverWithFiles(context: Context, count: number): Promise<BenchServer> {
  const name = `file-list-${count}`
  const first = await startServer(context, { name })
  const { id } = await first.call<{ id: string }>('GET', '/workspaces')
  await first.end()
  context.say(`${count.toLocaleString('en')} files are written`)
  const db = new Database(join(first.dataDir, 'svc.db'))
  db.pragma('synchronous = OFF')
  db.prepare(
    `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ${count})
     insert into files (id, workspace_id, name, content_type, size_bytes, owner_user_id, visibility, created_by_type,
                        created_by_id, sha256, revision_count, blob_id, created_at, updated_at)
     select printf('file_%016d', i), ?, printf('report-%d.txt', i), 'text/plain', 100, 'usr_0000000000000000',
            case when i % 3 = 0 then 'private' else 'company' end, 'user', 'usr_0000000000000000', 'x', 1,
            printf('blb_%016d', i), ${bornAt} + i * 1000, ${bornAt} + i * 1000 from n`,
  ).run(id)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
  return startServer(context, { name })
}
