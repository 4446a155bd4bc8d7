import { mkdtempSync, readdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { TestServer, type CallOptions, type Reply } from '../../kit/server.ts'

/** A server whose files lie in a folder of their own, which a test looks into. */
export interface FilesServer {
  server: TestServer
  /** Names of what lies in the storage. */
  stored: () => string[]
  /** Cuts bytes that are stored, as a restored backup may have them. */
  cut: (blobId: string, length: number) => void
}

export async function startFilesServer(): Promise<FilesServer> {
  const folder = mkdtempSync(join(inject('databases').folder, 'files-'))
  const server = await TestServer.start({ settings: { SVC_FILES_URL: `file://${folder}` } })
  const stored = () =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
  const cut = (blobId: string, length: number) => {
    const path = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith(blobId))
    truncateSync(join(folder, path!), length)
  }
  return { server, stored, cut }
}

export const base64 = (content: string | Uint8Array): string => Buffer.from(content).toString('base64')

/** Uploads a file as the owner, unless a token is given. */
export async function upload(
  server: TestServer,
  {
    token,
    content = 'Some notes.',
    ...body
  }: Record<string, unknown> & { token?: string; content?: string | Uint8Array },
  // oxlint-disable-next-line typescript/no-explicit-any
): Promise<any> {
  const sent = { name: 'notes.txt', contentBase64: base64(content), ...body }
  return server.ok('/files', { body: sent, ...(token === undefined ? {} : { token }) })
}

export const as = (token: string): CallOptions => ({ token })

/** What changes a file or its bytes: each resolves with the change, once there is what it takes. */
export function fileChanges(
  server: TestServer,
  content: string | Uint8Array = 'Other notes.',
): Record<string, () => Promise<() => Promise<Reply>>> {
  const body = { contentBase64: base64(content) }
  const bulkDelete = (...fileIds: string[]) => server.call('/files/bulk-delete', { body: { fileIds } })
  return {
    upload: async () => () => server.call('/files', { body: { name: 'new.txt', ...body } }),
    replace: async () => {
      const { id } = await upload(server, {})
      return () => server.call(`/files/${id}/replace`, { body })
    },
    delete: async () => {
      const { id } = await upload(server, {})
      return () => server.call(`/files/${id}`, { method: 'DELETE' })
    },
    'bulk-delete': async () => {
      const [first, second] = [await upload(server, {}), await upload(server, {})]
      return () => bulkDelete(first.id, second.id)
    },
    restore: async () => {
      const { id } = await upload(server, {})
      await bulkDelete(id)
      return () => server.call(`/files/${id}/restore`, { method: 'POST' })
    },
    purge: async () => {
      const { id } = await upload(server, {})
      await server.ok(`/files/${id}/replace`, { body })
      await bulkDelete(id)
      server.world.advance(11 * 60_000)
      return async () => {
        await server.plane.sweeper.runAll()
        const { status, headers } = await server.call(`/files/${id}?includeDeleted=true`)
        return { status: status === 404 ? 200 : 500, headers, body: null }
      }
    },
  }
}
