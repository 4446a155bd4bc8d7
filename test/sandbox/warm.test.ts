import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { waitFor } from '../kit/programs.ts'
import { cloudServer, endedRun, engineClient, hasNoEngine } from '../kit/sandboxes.ts'
import type { TestServer } from '../kit/server.ts'

interface WarmContainer {
  Id: string
  Config: { Env: string[]; Labels: Record<string, string> }
  State: { Pid: number; Running: boolean }
  HostConfig: { ReadonlyRootfs: boolean; NetworkMode: string; CapDrop: string[] }
  Mounts: { Type: string; Source: string; RW: boolean; Destination: string }[]
}

const client = () => engineClient()

async function read<T>(path: string, query = {}): Promise<T> {
  return JSON.parse((await client().call({ method: 'GET', path, query })).body.toString()) as T
}

/** Those that wait for a run, once there are so many. */
const whenWaiting = (server: TestServer, count: number): Promise<WarmContainer[]> =>
  waitFor(async () => {
    const rows = (await server.database.root('warm_sandboxes')) as { id: string; state: string }[]
    if (rows.length !== count || rows.some(({ state }) => state !== 'ready')) return null
    const found = await Promise.all(rows.map(({ id }) => read<WarmContainer>(`/containers/svc-warm-${id}/json`)))
    const logs = await Promise.all(found.map(({ Id }) => logOf(Id)))
    return logs.every((log) => log.includes('waits to be told')) ? found : null
  }, `${count} that wait`)

const logOf = async (id: string) =>
  (
    await client().call({ method: 'GET', path: `/containers/${id}/logs`, query: { stdout: '1', stderr: '1' } })
  ).body.toString()

/** Of a file of a process; of one that has ended meanwhile, nothing. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return ''
    throw error
  }
}

/** All processes below the first one of a container. */
function processesOf(pid: number): number[] {
  const children = textOf(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean)
  return [pid, ...children.flatMap((child) => processesOf(Number(child)))]
}

test.skipIf(hasNoEngine)(
  'a run is given a container that was made ahead, in which nothing was that a run or a thief could use',
  { timeout: 180_000 },
  async () => {
    const server = await cloudServer({ settings: { SVC_SANDBOX_WARM: '1', SVC_SANDBOX_MAX: '2', SVC_SWEEP_MS: '500' } })
    const [warm] = await whenWaiting(server, 1)
    const broker = warm!.Mounts.find(({ Destination }) => Destination === sandboxPlaces.broker)!
    expect(broker).toMatchObject({ Type: 'bind', RW: false })
    expect(warm!.HostConfig).toMatchObject({ ReadonlyRootfs: true, NetworkMode: 'none', CapDrop: ['ALL'] })
    // No socket of a broker either.
    expect(readdirSync(broker.Source)).toEqual(['waiting.json'])
    const environments = processesOf(warm!.State.Pid).map((pid) => textOf(`/proc/${pid}/environ`))
    const told = [readFileSync(join(broker.Source, 'waiting.json'), 'utf8'), ...environments, ...warm!.Config.Env]
    for (const each of told) expect(each).not.toMatch(/svc_(?:dev|run)_|run_\w{16}|TOKEN=|KEY=/)

    const agent = await server.createAgent({
      environment: 'cloud',
      harness: 'command',
      toolPermissionMode: 'full',
      command: `ls -A ${sandboxPlaces.work}/home; ls ${sandboxPlaces.broker}; echo here; svc whoami`,
    })
    const { runPublicId } = await server.ok(`/agents/${agent.id}/runs`, { body: { prompt: 'go' } })
    const run = await endedRun(server, runPublicId)
    expect(run).toMatchObject({ status: 'succeeded', sandbox: { id: warm!.Config.Labels['svc.sandbox'] } })
    const { data } = await server.ok(`/runs/${runPublicId}/events?limit=200`)
    const text = (data as { data: { text?: string } }[]).map((event) => event.data.text ?? '').join('')
    expect(text).toContain(`"runId":"${runPublicId}"`)
    // Its token is gone, and so is what it waited with.
    expect(text.slice(0, text.indexOf('here'))).not.toMatch(/identity|waiting/)
    // Its walls were tried by the process that started it.
    const { wall } = await server.ok(`/runs/${runPublicId}/manifest`)
    expect(wall).toHaveLength(10)

    const [next] = await whenWaiting(server, 1)
    expect(next!.Id).not.toBe(warm!.Id)
    await client().does({ method: 'POST', path: `/containers/${next!.Id}/stop`, query: { t: '5' } }, [204])
    const [third] = await waitFor(async () => {
      const found = await whenWaiting(server, 1)
      return found[0]!.Id === next!.Id ? null : found
    }, 'another one')
    expect(third!.State.Running).toBe(true)
  },
)
