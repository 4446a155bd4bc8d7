import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { TestServer } from '../kit/server.ts'
import { makeHome, type Home } from './run-svc.ts'

/** What a test file of commands has for as long as it runs: a home, a folder in it to work in, and a server without a double. */
export interface RealServer {
  readonly home: Home
  readonly server: TestServer
  readonly folder: string
  /** Runs `svc` in the folder, as the owner of the workspace unless `env` says otherwise. */
  svc(line: readonly string[], options?: { env?: Record<string, string>; input?: string }): ReturnType<Home['svc']>
}

export function useRealServer(settings: Record<string, string> = {}): RealServer {
  let parts: { home: Home; server: TestServer; folder: string } | null = null
  const made = () => {
    if (parts === null) throw new Error('the tests of this file have not begun')
    return parts
  }
  beforeAll(async () => {
    const home = makeHome()
    const folder = join(home.dir, 'work')
    mkdirSync(folder)
    parts = { home, folder, server: await TestServer.start({ settings }) }
  })
  afterAll(async () => {
    await parts?.server.stop()
    parts?.home.remove()
  })
  return {
    get home() {
      return made().home
    },
    get server() {
      return made().server
    },
    get folder() {
      return made().folder
    },
    svc(line, { env = {}, input = '' } = {}) {
      const { home, server, folder } = made()
      const own = { SVC_TOKEN: server.owner.token, SVC_API_URL: server.url }
      return home.svc(line, { env: { ...own, ...env }, input, cwd: folder })
    },
  }
}
