import { request } from 'node:http'
import { delay, waitFor } from '../../test/kit/programs.ts'
import { missingEngine, NoEngineError, startSharedEngine, type TestEngine } from '../../test/kit/sandbox-engine.ts'
import type { Context } from './context.ts'
import { processFigures, startServer, type BenchServer } from './stack.ts'

/** Cloud runs of the compiled server on an engine of this checkout's own. */
export interface CloudStage {
  engine: TestEngine
  server: BenchServer
  /** Wakes an agent, and resolves with the id of its run and the time until its output has `until`. */
  wake(agentId: string, until: string): Promise<{ runId: string; ms: number; text: string }>
  /** The ids of all that the engine has. */
  containers(): Promise<string[]>
  /** Resolves once the engine has only so many containers, and they use no processor any more. */
  quiet(containers: number): Promise<void>
  end(): Promise<void>
}

export const image = 'svc-sandbox'

/** null: this machine has none, and it was said. */
export async function engineFor({ say }: Pick<Context, 'say'>): Promise<TestEngine | null> {
  const none = (why: string) => {
    say(`*** NOT MEASURED: cloud runs, since ${why} ***`)
    return null
  }
  const missing = missingEngine()
  if (missing !== null) return none(missing)
  try {
    return await startSharedEngine()
  } catch (error) {
    if (error instanceof NoEngineError) return none(error.message)
    throw error
  }
}

export async function openCloud(
  context: Context,
  { engine, name, env }: { engine: TestEngine; name: string; env: Readonly<Record<string, string>> },
): Promise<CloudStage> {
  const sandbox = { SVC_SANDBOX: 'docker', SVC_SANDBOX_SOCKET: engine.socket, SVC_SANDBOX_IMAGE: image }
  const server = await startServer(context, { name, env: { ...sandbox, ...env } })
  const ids = async () => (await engine.docker('ps', '--all', '--quiet', '--no-trunc')).split('\n').filter(Boolean)
  return {
    engine,
    server,
    async wake(agentId, until) {
      const sentAt = performance.now()
      const { runPublicId } = await server.call<{ runPublicId: string }>('POST', `/agents/${agentId}/runs`, {
        prompt: 'Go.',
      })
      const { at, text } = await outputWith(server, { runId: runPublicId, until })
      return { runId: runPublicId, ms: at - sentAt, text }
    },
    containers: ids,
    async quiet(containers) {
      await waitFor(async () => (await ids()).length === containers, `${containers} containers`, { ms: 60_000 })
      const look = async () => {
        const pids = await Promise.all((await ids()).map((id) => pidsOf(engine, id)))
        return JSON.stringify(pids.flat().map((pid) => processFigures(pid).cpuMs))
      }
      // A container that begins or ends has processes that come and go.
      const used = () => look().catch(() => crypto.randomUUID())
      let before = ''
      for (let now = await used(); now !== before; now = await used()) {
        before = now
        await delay(1_000)
      }
    },
    async end() {
      await server.end()
    },
  }
}

export const createCloudAgent = async (
  { server }: CloudStage,
  { name, command, ...more }: { name: string; command: string; defaultRepoId?: string },
): Promise<string> => {
  const body = { name, command, environment: 'cloud', harness: 'command', toolPermissionMode: 'full', ...more }
  return (await server.call<{ id: string }>('POST', '/agents', body)).id
}

/** The processes in a container, as this machine numbers them. */
export async function pidsOf(engine: TestEngine, id: string): Promise<number[]> {
  const [, ...lines] = (await engine.docker('top', id, '-eo', 'pid')).split('\n')
  return lines.map(Number)
}

/** Follows a run until its output has a word. */
function outputWith(
  { url, token }: BenchServer,
  { runId, until }: { runId: string; until: string },
): Promise<{ at: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
    const sent = request(`${url}/api/v1/runs/${runId}/events`, { headers })
    sent.once('error', reject)
    sent.once('response', (response) => {
      if (response.statusCode !== 200) return reject(new Error(`the stream answered ${response.statusCode}`))
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        const isOver = text.includes('"kind":"ended"')
        if (!text.includes(until) && !isOver) return
        sent.destroy()
        if (text.includes(until)) resolve({ at: performance.now(), text })
        else reject(new Error(`${runId} ended without ${until}:\n${text.slice(-2_000)}`))
      })
      response.once('end', () => reject(new Error(`the stream of ${runId} ended:\n${text.slice(-2_000)}`)))
    })
    sent.end()
  })
}
