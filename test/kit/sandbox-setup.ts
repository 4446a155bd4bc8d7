import type { TestProject } from 'vitest/node'
import { missingCompose, missingEngine, NoEngineError, startSharedEngine, type TestEngine } from './sandbox-engine.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of an engine that has the image `svc-sandbox`; null: there is none here. */
    sandboxEngine: { socket: string; pid: number } | null
  }
}

/** Starts the engine of the tests of sandboxes. Without one they are counted as skipped. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const engine = await sharedEngine()
  if (typeof engine === 'string') {
    process.stderr.write(`\n*** NOT TESTED: sandboxes, since ${engine}\n\n`)
    project.provide('sandboxEngine', null)
    return undefined
  }
  project.provide('sandboxEngine', { socket: engine.socket, pid: engine.pid })
  const compose = missingCompose()
  if (compose !== null) process.stderr.write(`\n*** NOT TESTED: the compose file, since ${compose}\n\n`)
  return () => engine.stop()
}

/** Or why there is none here. */
async function sharedEngine(): Promise<TestEngine | string> {
  const missing = missingEngine()
  if (missing !== null) return missing
  try {
    return await startSharedEngine()
  } catch (error) {
    if (error instanceof NoEngineError) return error.message
    throw error
  }
}
