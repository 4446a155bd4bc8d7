import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { programFile } from '../../kit/program-file.ts'

test('the engine of workflows is part of what is published with its file, and needs nothing of the environment', async () => {
  const worker = new Worker(pathToFileURL(programFile('control-plane/workflows/engine')), { env: {} })
  try {
    expect(await once(worker, 'message')).toMatchObject([{ answer: 'ready' }])
    const source = "export const meta = { name: 'x', title: 'X' }\nreturn await agent('Go on')"
    const input = { source, input: '{}', seed: 's', startedAt: 0, known: [], journalBytes: 0, results: [] }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
    worker.postMessage({ name: 'replay', input })
    expect(await once(worker, 'message')).toMatchObject([
      { answer: { value: { kind: 'replayed', end: null, calls: [{ kind: 'agent' }] } } },
    ])
  } finally {
    await worker.terminate()
  }
})
