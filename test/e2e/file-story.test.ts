import { afterAll, beforeAll, describe, test } from 'vitest'
import { fileStory } from '../fault/file-story.ts'
import { startFilesStage, type FilesStage } from '../fault/files-stage.ts'
import { hasPostgres, openPostgres, type PostgresDatabase } from '../kit/database.ts'

// The life of the largest files in a bucket; `fault/files-deaths.test.ts` has it on a disk, with SQLite.

describe.skipIf(!hasPostgres())('with two replicas on PostgreSQL', () => {
  let database: PostgresDatabase
  let stage: FilesStage
  beforeAll(async () => {
    database = await openPostgres()
    const env = { UV_THREADPOOL_SIZE: '4' }
    stage = await startFilesStage({ storage: 's3', databaseUrl: database.url, replicas: 2, env })
  })
  afterAll(async () => {
    await stage?.close()
    await database.close()
  })

  test('up, restarted, down, replaced, deleted, restored and purged in a bucket', () => fileStory(stage))
})
