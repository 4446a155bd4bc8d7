import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { StartError } from '../../../control-plane/process/config-error.ts'
import { TestServer } from '../../kit/server.ts'
import { upload } from '../resources/files-kit.ts'

// Replicas on one database, each of which is told where the files lie; `process/server/start.test.ts` has what a refusal ends with.

test('a replica that does not share the files of the others refuses to start, and says why', async () => {
  const [files, others] = ['apart-', 'others-'].map((name) => mkdtempSync(join(inject('databases').folder, name)))
  const server = await TestServer.start({ settings: { SVC_FILES_URL: `file://${files}` } })
  const beside = (folder: string) =>
    TestServer.start({ beside: server, settings: { SVC_FILES_URL: `file://${folder}` } })
  try {
    const { id } = await upload(server, {})
    const refused = beside(others!)
    await expect(refused).rejects.toThrow(StartError)
    await expect(refused).rejects.toThrow(
      `The files of this database are not in the folder ${others}. All replicas share one folder or bucket (SVC_FILES_URL)`,
    )
    const replica = await beside(files!)
    try {
      const { url } = await replica.ok(`/files/${id}/download`)
      const { pathname, search } = new URL(url)
      const { text } = await replica.ask(pathname + search, { method: 'GET', headers: {} })
      expect(text).toBe('Some notes.')
    } finally {
      await replica.stop()
    }
  } finally {
    await server.stop()
  }
})
