import type { TestProject } from 'vitest/node'
import { missingEngine, startSharedEngine } from './sandbox-engine.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of an engine that has the image `svc-sandbox`; null: there is none here. */
    sandboxEngine: { socket: string; pid: number } | null
  }
}

/** Starts the engine of the tests of sandboxes. Without one they are counted as skipped. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const missing = missingEngine()
  if (missing !== null) {
    process.stderr.write(`The tests of sandboxes are skipped: ${missing}.\n`)
    project.provide('sandboxEngine', null)
    return undefined
  }
  const engine = await startSharedEngine()
  project.provide('sandboxEngine', { socket: engine.socket, pid: engine.pid })
  return () => engine.stop()
}
