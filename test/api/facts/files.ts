import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { inject } from 'vitest'
import { TestServer, type Reply } from '../../kit/server.ts'
import type { Stage } from '../contract/stage.ts'
import { inBase64, makeFile } from './kit/files.ts'
import { manyIds, on, patch, plain, post, thing } from './kit/recipe.ts'
import type { CodeRecipe, GoodRequest, Recipe, ResourceFacts } from './kit/resource-facts.ts'
import { transferRecipes } from './kit/transfer.ts'

const aFile: Recipe = async (stage) => ({ params: { 'files.id': (await makeFile(stage)).id } })
const content = { contentBase64: inBase64('More notes.') }

async function aRevision(stage: Stage): Promise<GoodRequest> {
  const { id } = await makeFile(stage)
  const { data } = await stage.server.ok(`/files/${id}/revisions`)
  return { params: { 'files.id': id, 'files.revisionId': data[0].id } }
}

async function bulkDeleted(stage: Stage): Promise<string> {
  const { id } = await makeFile(stage)
  await stage.server.ok('/files/bulk-delete', { body: { fileIds: [id] } })
  return id as string
}

/** A file whose bytes somebody removed from the disk. */
async function withoutBytes(stage: Stage): Promise<{ path: string; revision: string }> {
  const { params } = await aRevision(stage)
  const [path, revision] = [`/files/${params!['files.id']}`, params!['files.revisionId']!]
  const { root } = stage.server.database
  const { blob_id: blob } = (await root('files').where({ id: params!['files.id'] }).first('blob_id')) as {
    blob_id: string
  }
  const { value } = (await root('server_keys').where({ name: 'files_mark' }).first('value')) as { value: string }
  rmSync(join(inject('databases').folder, 'files', value, blob.slice(-2), blob))
  return { path, revision }
}

/** Asks a server whose storage is away, and which has one file. */
async function withoutStorage(stage: Stage, ask: (server: TestServer, path: string) => Promise<Reply>): Promise<Reply> {
  const server = await stage.other('without storage', async () => {
    const folder = join(inject('databases').folder, crypto.randomUUID())
    const started = await TestServer.start({ settings: { SVC_DATA_DIR: folder } })
    await makeFile({ server: started })
    renameSync(join(folder, 'files'), join(folder, 'away'))
    // No folder any more, so nothing can be looked up in it.
    writeFileSync(join(folder, 'files'), '')
    return started
  })
  const { data } = await server.ok('/files')
  return ask(server, `/files/${data[0].id}`)
}

async function whileStarting(stage: Stage, ask: () => Promise<Reply>): Promise<Reply> {
  const { sweeper } = stage.server.plane
  await sweeper.stop()
  try {
    return await ask()
  } finally {
    sweeper.start()
  }
}

const upload = { name: 'a.bin', ...content }

/** Characters of base64 of one byte more than a file may have. */
const tooMany = Math.ceil(52_428_801 / 3) * 4
/** They are sent packed: 70 MB are neither kept nor sent. */
async function sendTooLarge({ server, owner }: Stage, path: string): Promise<Reply> {
  // In members of 64 KiB, which are alike but for the ends, so one is packed for all.
  const [pieces, rest] = [Math.floor(tooMany / 65_536), tooMany % 65_536]
  const piece = gzipSync('A'.repeat(65_536))
  const packed = [gzipSync(`{"name":"a","contentBase64":"`), ...Array.from({ length: pieces }, () => piece)]
  const { text, ...reply } = await server.ask(`/api/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${owner.token}`,
      'content-type': 'application/json',
      'content-encoding': 'gzip',
    },
    body: Buffer.concat([...packed, gzipSync(`${'A'.repeat(rest)}"}`)]),
  })
  return { ...reply, body: JSON.parse(text) }
}

export const fileFacts: ResourceFacts = {
  requests: {
    'files.list': plain,
    'files.create': () => ({ body: upload }),
    'files.get': aFile,
    'files.update': async (stage) => ({ ...(await aFile(stage)), body: { name: 'other.txt' } }),
    'files.delete': aFile,
    'files.restore': async (stage) => ({ params: { 'files.id': await bulkDeleted(stage) } }),
    'files.download': aFile,
    'files.revisions.list': aFile,
    'files.revisions.download': aRevision,
    'files.replace': async (stage) => ({ ...(await aFile(stage)), body: content }),
    'files.transferOwner': async (stage) => ({ ...(await aFile(stage)), body: { newOwnerId: stage.member.userId } }),
    'files.bulkDelete': async (stage) => ({ body: { fileIds: [(await makeFile(stage)).id] } }),
  },
  codes: [
    on('files.list', '400 too_many_ids', (stage) => manyIds(stage, '/files', 'file_0000000000000000')),
    on('files.list', '400 ids_exclusive', ({ server }) => server.call('/files?ids=file_0000000000000000&q=a')),
    on('files.list', '400 expand.not_allowed_on_list', ({ server }) => server.call('/files?expand[]=content')),
    on('files.list', '403 list_deleted_forbidden', ({ server, live }) =>
      server.call('/files?status=deleted', { token: live.token }),
    ),
    on('files.create', '400 content_required', ({ server }) => server.call('/files', post({ name: 'a' }))),
    on('files.create', '413 validation_error', (stage) => sendTooLarge(stage, '/files')),
    on('files.create', '403 visibility_flip_forbidden', ({ server, live }) =>
      server.call('/files', post({ ...upload, visibility: 'private' }, live.token)),
    ),
    on('files.create', '503 storage_unavailable', (stage) =>
      withoutStorage(stage, (server) => server.call('/files', post(upload))),
    ),
    on('files.replace', '400 content_required', async (stage) =>
      stage.server.call(`/files/${(await makeFile(stage)).id}/replace`, post({})),
    ),
    on('files.replace', '413 validation_error', async (stage) =>
      sendTooLarge(stage, `/files/${(await makeFile(stage)).id}/replace`),
    ),
    on('files.replace', '503 storage_unavailable', (stage) =>
      withoutStorage(stage, (server, path) => server.call(`${path}/replace`, post(content))),
    ),
    on('files.get', '400 expand_unknown', async (stage) =>
      stage.server.call(`/files/${(await makeFile(stage)).id}?expand[]=owner`),
    ),
    on('files.get', '400 expand.content_too_large', async (stage) => {
      const { id } = await makeFile(stage, { contentBase64: inBase64('x'.repeat(51_201)) })
      return stage.server.call(`/files/${id}?expand[]=content`, { token: stage.live.token })
    }),
    on('files.get', '400 kind_mismatch', async (stage) =>
      stage.server.call(`${(await withoutBytes(stage)).path}?expand[]=content`),
    ),
    on('files.download', '400 kind_mismatch', async (stage) =>
      stage.server.call(`${(await withoutBytes(stage)).path}/download`),
    ),
    on('files.revisions.download', '400 kind_mismatch', async (stage) => {
      const { path, revision } = await withoutBytes(stage)
      return stage.server.call(`${path}/revisions/${revision}/download`)
    }),
    ...(['files.get', 'files.download', 'files.revisions.download'] as const).map((route): CodeRecipe =>
      on(route, '503 storage_unavailable', (stage) =>
        withoutStorage(stage, async (server, path) => {
          if (route === 'files.get') return server.call(`${path}?expand[]=content`)
          if (route === 'files.download') return server.call(`${path}/download`)
          const { data } = await server.ok(`${path}/revisions`)
          return server.call(`${path}/revisions/${data[0].id}/download`)
        }),
      ),
    ),
    on('files.update', '403 visibility_flip_forbidden', async (stage) =>
      stage.server.call(`/files/${(await makeFile(stage)).id}`, patch({ visibility: 'private' }, stage.member.token)),
    ),
    on('files.delete', '503 sweeper_not_registered', async (stage) => {
      const { id } = await makeFile(stage)
      return whileStarting(stage, () => stage.server.call(`/files/${id}`, { method: 'DELETE' }))
    }),
    on('files.bulkDelete', '503 sweeper_not_registered', async (stage) => {
      const fileIds = [(await makeFile(stage)).id]
      return whileStarting(stage, () => stage.server.call('/files/bulk-delete', post({ fileIds })))
    }),
    on('files.restore', '403 restore_forbidden', async (stage) =>
      stage.server.call(`/files/${await bulkDeleted(stage)}/restore`, post({}, stage.member.token)),
    ),
    on('files.restore', '409 not_deleted', async (stage) =>
      stage.server.call(`/files/${(await makeFile(stage)).id}/restore`, post()),
    ),
    on('files.restore', '422 restore_r2_gone', async (stage) => {
      const { id } = await makeFile(stage)
      await stage.server.ok(`/files/${id}`, { method: 'DELETE' })
      return stage.server.call(`/files/${id}/restore`, post())
    }),
    ...transferRecipes('files.transferOwner', async (stage) => `/files/${(await makeFile(stage)).id}`),
  ],
  withoutCommand: { 'files.revisions.download': '`svc file download --revision` asks for it.' },

  unknownIds: { 'files.id': 'file_0000000000000000', 'files.revisionId': 'frev_0000000000000000' },
  // With a relation, which `file-relations.ts` names.
  async things({ server, person: { token }, agentId }) {
    const { id } = await makeFile({ server }, {}, token)
    const { data } = await server.ok(`/files/${id}/revisions`, { token })
    const entityId = await server.startRun(agentId, {}, token)
    const body = { entityType: 'run', entityId, role: 'attachment' }
    const relation = await server.ok(`/files/${id}/relations`, { body, token })
    return { 'files.id': id, 'files.revisionId': data[0].id, relationId: relation.id }
  },
  within: [
    [
      'files.revisions.download',
      'GET',
      async (stage, ids) => ({
        path: `/files/${(await makeFile(stage)).id}/revisions/${ids['files.revisionId']}/download`,
      }),
    ],
  ],
  places: [
    ['files.list', 'GET', (_, ids) => ({ path: `/files?ids=${ids['files.id']}` })],
    ['files.list', 'GET', (_, ids) => ({ path: `/files?entityType=task&entityId=${ids['tasks.id']}` })],
    ['files.bulkDelete', 'POST', (_, ids) => ({ path: '/files/bulk-delete', body: { fileIds: [ids['files.id']] } })],
    [
      'files.create',
      'POST',
      (_, ids) => ({
        path: '/files',
        body: { ...upload, relations: [{ entityType: 'run', entityId: ids['runId'], role: 'attachment' }] },
      }),
    ],
    [
      'files.transferOwner',
      'POST',
      async (stage, ids) => ({
        path: `/files/${(await makeFile(stage)).id}/transfer-owner`,
        body: { newOwnerId: ids['userId'] },
      }),
    ],
  ],
  named: { fileId: thing('files.id') },
}
