import { mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { dieAtWrite, removeDeaths, setUpDeaths } from '../../kit/dying-writes.ts'
import { TestServer, type Reply } from '../../kit/server.ts'
import { base64, upload } from '../resources/files-kit.ts'

/**
 * What is left of a change of a file that dies at each of its writes in turn: all of it or nothing, and no bytes that no row
 * owns. `test/fault/files-deaths.test.ts` kills real servers.
 */

for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let folder: string
    let server: TestServer
    beforeAll(async () => {
      folder = mkdtempSync(join(inject('databases').folder, 'deaths-'))
      server = await TestServer.start({ database, settings: { SVC_FILES_URL: `file://${folder}` } })
      await setUpDeaths(server.database.root, database)
    })
    afterAll(async () => {
      await removeDeaths(server.database.root, database)
      await server.stop()
    })

    const content = { contentBase64: base64('Other notes.') }
    const bulkDelete = (...fileIds: string[]) => server.call('/files/bulk-delete', { body: { fileIds } })
    /** Each resolves with what changes the file. */
    const operations: Record<string, () => Promise<() => Promise<Reply>>> = {
      upload: async () => () => server.call('/files', { body: { name: 'new.txt', ...content } }),
      replace: async () => {
        const { id } = await upload(server, {})
        return () => server.call(`/files/${id}/replace`, { body: content })
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
        await server.ok(`/files/${id}/replace`, { body: content })
        await bulkDelete(id)
        server.world.advance(11 * 60_000)
        return async () => {
          await server.plane.sweeper.runAll()
          const { status, headers } = await server.call(`/files/${id}?includeDeleted=true`)
          return { status: status === 404 ? 200 : 500, headers, body: null }
        }
      },
    }

    it.each(Object.keys(operations))('%s is done or not, and leaves no bytes behind', async (name) => {
      const { root } = server.database
      const rowsOf = async () => ({
        files: await root('files').orderBy('id').select('id', 'version', 'blob_id', 'deleted_at'),
        revisions: await root('file_revisions').orderBy('id').select('id', 'blob_id'),
      })
      const act = await operations[name]!()
      const before = await rowsOf()
      let deaths = 0
      for (let nth = 1; ; nth++) {
        await dieAtWrite(root, nth)
        const { status } = await act()
        const [{ writes }] = await root('death').select('writes')
        await dieAtWrite(root, 0)
        if (status < 400 && Number(writes) > 0) break
        if (status >= 400) {
          expect([nth, await rowsOf()]).toEqual([nth, before])
          deaths++
        }
      }
      expect(deaths).toBeGreaterThanOrEqual(name === 'restore' ? 1 : 2)
      expect(await rowsOf()).not.toEqual(before)
      // Long after anything that was begun.
      server.world.advance(2 * 3_600_000)
      await server.plane.sweeper.runAll()
      const owned = (await rowsOf()).revisions.flatMap(({ blob_id: id }) => (id === null ? [] : [id as string]))
      const stored = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
      expect(stored.map((entry) => entry.name).toSorted()).toEqual(owned.toSorted())
    })
  })
