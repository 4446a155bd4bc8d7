import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyPostgres, hasPostgres } from '../../kit/database.ts'
import { TestServer } from '../../kit/system-server.ts'

/** Real replicas on one PostgreSQL, with a folder of files each. */

test.skipIf(!hasPostgres())(
  'a replica that does not share the files of the others refuses to start, and says why',
  async () => {
    const root = mkdtempSync(join(tmpdir(), 'svc-apart-'))
    const database = await emptyPostgres()
    const servers: TestServer[] = []
    const replica = (name: string, env: Readonly<Record<string, string>> = {}) => {
      const server = new TestServer({ name, root, env, databaseUrl: database.url, tokenOf: servers[0] ?? null })
      servers.push(server)
      return server
    }
    try {
      const first = replica('first')
      await first.start()
      const contentBase64 = Buffer.from('Notes.').toString('base64')
      const { id } = await first.api.call<{ id: string }>('POST', '/files', { name: 'notes.txt', contentBase64 })

      const apart = replica('apart')
      await expect(apart.start()).rejects.toThrow('apart ended at its start')
      expect((await apart.program.exited).code).not.toBe(0)
      expect(apart.log).toContain(
        `The files of this database are not in the folder ${join(apart.dataDir, 'files')}. All replicas share one folder or bucket (SVC_FILES_URL)`,
      )

      const beside = replica('beside', { SVC_FILES_URL: `file://${join(first.dataDir, 'files')}` })
      await beside.start()
      const { url } = await beside.api.call<{ url: string }>('GET', `/files/${id}/download`)
      expect(await (await fetch(url)).text()).toBe('Notes.')
    } finally {
      for (const server of servers) if (server.isRunning) await server.kill9()
      await database.close()
      rmSync(root, { recursive: true, force: true })
    }
  },
)
