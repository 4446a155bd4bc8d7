import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hostRecord } from '../../device-manager/run-host/wire/protocol.ts'
import { waitFor } from '../../test/kit/programs.ts'
import type { Context } from './context.ts'
import { startDevice, startServer, type BenchDevice, type BenchServer } from './stack.ts'

/** Server and device of a release, with the stand-in of claude on the PATH of the person's shell. */
export interface StandInStack {
  server: BenchServer
  device: BenchDevice
  /** The folder in which runs work. */
  home: string
  begin(run: { agent: string; prompt: string }): Promise<{ runPublicId: string }>
  /** Orders the stand-in; `at`: what its files begin with. */
  order(agent: string, what: Record<string, unknown>): Promise<{ runPublicId: string; at: string }>
  claudeAgent(allow?: readonly string[]): Promise<string>
  ended(runPublicId: string): Promise<void>
  end(): Promise<void>
}

export async function startStandInStack(
  context: Context,
  { name, dist = context.dist }: { name: string; dist?: string },
): Promise<StandInStack> {
  const home = join(context.scratch, name)
  const bin = join(home, 'bin')
  mkdirSync(bin, { recursive: true })
  copyFileSync(join(import.meta.dirname, 'stand-in-claude.mjs'), join(bin, 'claude'))
  chmodSync(join(bin, 'claude'), 0o755)
  const path = `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`
  writeFileSync(join(home, '.profile'), `export PATH='${path}'\n`)
  const server = await startServer({ scratch: home, dist }, { name: 'server' })
  const device = await startDevice({ scratch: home, dist }, { server, name: 'device' })
  let orders = 0
  const begin = async ({ agent, prompt }: { agent: string; prompt: string }) => {
    await device.whenWarm()
    return server.call<{ runPublicId: string }>('POST', `/agents/${agent}/runs`, { prompt })
  }
  return {
    server,
    device,
    home,
    begin,
    async order(agent, what) {
      const at = join(home, `order-${++orders}`)
      const { runPublicId } = await begin({ agent, prompt: `bench${JSON.stringify({ ...what, at })}` })
      return { runPublicId, at }
    },
    async claudeAgent(allow = []) {
      const { id } = await server.call<{ id: string }>('POST', '/agents', { name: 'Worker', harness: 'claude' })
      const tools = { allow, defaultMode: allow.length > 0 ? 'ask' : 'full' }
      await server.call('PUT', `/agents/${id}/config`, { config: { permissions: { tools } } })
      return id
    },
    async ended(runPublicId) {
      const statusOf = async () => (await server.call<{ status: string }>('GET', `/runs/${runPublicId}`)).status
      const status = await waitFor(
        async () => {
          const now = await statusOf()
          return ['succeeded', 'failed', 'cancelled'].includes(now) ? now : null
        },
        'the run ended',
        { everyMs: 100 },
      )
      if (status !== 'succeeded') throw new Error(`the run of the stand-in ended ${status}`)
    },
    async end() {
      await device.end()
      await server.end()
    },
  }
}

export const fileCame = (path: string): Promise<unknown> =>
  waitFor(() => existsSync(path), `${path} is written`, { ms: 120_000, everyMs: 20 })

/** The process of the host that has the one run of this device. */
export function pidOfRunHost({ stateDir }: Pick<BenchDevice, 'stateDir'>): number {
  const hosts = join(stateDir, 'hosts')
  const records = readdirSync(hosts)
    .filter((file) => file.endsWith('.json'))
    .map((file) => hostRecord.parse(JSON.parse(readFileSync(join(hosts, file), 'utf8'))))
    .filter(({ runId }) => runId !== null)
  if (records.length !== 1) throw new Error(`one run was expected, and there are ${records.length}`)
  return records[0]!.pid
}

/** In MB: resident, and the part of it that is counted once however many processes share it. */
export function memoryOf(pid: number): { rss: number; pss: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1])
  return { rss: kilobytes('Rss') / 1024, pss: kilobytes('Pss') / 1024 }
}
