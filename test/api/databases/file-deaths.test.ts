import { mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { dieAtWrite, removeDeaths, setUpDeaths } from '../../kit/dying-writes.ts'
import { databasesFor } from '../../kit/forms.ts'
import { TestServer } from '../../kit/server.ts'
import { fileChanges } from '../resources/files-kit.ts'

// What is left of a change of a file that dies at each of its writes in turn: all of it or nothing, and no bytes that no row
// owns. `test/fault/files-deaths.test.ts` kills real servers, and has what kills leave of each of these on SQLite.

const changes = ['upload', 'replace', 'delete', 'bulk-delete', 'restore', 'purge']

for (const database of databasesFor(hasPostgres() ? 'postgres' : 'sqlite'))
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

    it.each(changes)('%s is done or not, and leaves no bytes behind', async (name) => {
      const { root } = server.database
      const rowsOf = async () => ({
        files: await root('files').orderBy('id').select('id', 'version', 'blob_id', 'deleted_at'),
        revisions: await root('file_revisions').orderBy('id').select('id', 'blob_id'),
      })
      const act = await fileChanges(server)[name]!()
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
