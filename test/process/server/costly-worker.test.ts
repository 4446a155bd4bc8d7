import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { programFile } from '../../kit/program-file.ts'

test('the worker for costly work is part of what is published, and needs nothing of the environment', async () => {
  const worker = new Worker(pathToFileURL(programFile('control-plane/costly')), { env: {} })
  try {
    expect(await once(worker, 'message')).toMatchObject([{ answer: 'ready' }])
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
    worker.postMessage({ name: 'schemas.check', input: JSON.stringify({ Bad: { type: 'nothing' } }) })
    expect(await once(worker, 'message')).toEqual([
      { answer: { value: { name: 'Bad', message: expect.any(String) } }, usedMs: expect.any(Number) },
    ])
  } finally {
    await worker.terminate()
  }
})
