import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import type { Context } from './context.ts'

/** Asks a server's process what only it knows; see `server-probe.mjs`, which its `nodeFlags` load. */
export interface ServerProbe {
  nodeFlags: readonly string[]
  /**
   * The 99th percentile of the times between two turns of its event loop since this was asked last, in milliseconds: those of
   * a loop with nothing to do are `lagResolutionMs`.
   */
  lagP99(): Promise<number>
  /** The same without what others did: at most the time for which the thread had a processor. */
  ownLagP99(): Promise<number>
  /** Resident bytes after a collection. */
  residentBytes(): Promise<number>
}

/** Node's default, with which the server's own metrics tell of its event loop. */
export const lagResolutionMs = 10

export function serverProbe({ scratch }: Pick<Context, 'scratch'>, name: string): ServerProbe {
  const path = join(scratch, `${name}.sock`)
  const url = pathToFileURL(join(import.meta.dirname, 'server-probe.mjs'))
  url.searchParams.set('socket', path)
  url.searchParams.set('lagResolutionMs', String(lagResolutionMs))
  const ask = async (word: string): Promise<unknown> => {
    const socket = connect(path)
    const lines = createInterface({ input: socket })
    socket.write(`${word}\n`)
    const [line] = (await once(lines, 'line')) as [string]
    socket.destroy()
    return JSON.parse(line)
  }
  return {
    nodeFlags: ['--import', url.href],
    lagP99: async () => (await ask('lag')) as number,
    ownLagP99: async () => (await ask('ownLag')) as number,
    residentBytes: async () => (await ask('resident')) as number,
  }
}
