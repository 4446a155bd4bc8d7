import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DockerDouble, runnerIn } from '../../kit/docker-double.ts'
import { workOnce } from '../../kit/fake-runner.ts'
import { repeats } from '../../kit/forms.ts'
import { delay, seededRandom, waitFor } from '../../kit/programs.ts'
import { TestSystem } from '../../kit/system.ts'
import { hasNothingOfRuns } from './keeper-kit.ts'

const kills = repeats('WARM_KILLS', { short: 4, long: 100 })
/** From the wakes to the end of their runs, where nothing is killed. */
const lifeMs = 300
const most = 4

test(
  `a server is killed with -9 ${kills} times while runs are given containers that were made ahead`,
  // A server waits for a minute for one that another may still be making.
  { timeout: 120_000 + kills * 65_000 },
  async () => {
    const random = seededRandom('kills of servers with sandboxes made ahead')
    const taken: string[] = []
    const engine = await new DockerDouble(async (container) => {
      const device = await runnerIn(container)
      taken.push(container.name)
      // It does not come again.
      const cut = device.closed.then(() => 137)
      return Promise.race([workOnce(device, container.name), cut])
    }).start()
    const system = await TestSystem.start({
      devices: 0,
      serverEnv: {
        SVC_SANDBOX: 'docker',
        SVC_SANDBOX_SOCKET: engine.socket,
        SVC_SANDBOX_WARM: '2',
        SVC_SANDBOX_MAX: String(most),
        SVC_SWEEP_MS: '300',
      },
    })
    try {
      const { server } = system
      const agent = { environment: 'cloud', harness: 'command', toolPermissionMode: 'full', command: 'true' }
      const { id } = await server.api.createAgent({ ...agent, name: 'Killed' })
      const runIds: string[] = []
      const reasons: string[] = []
      for (let count = 0; count < kills; count++) {
        const own = [await server.api.startRun(id), await server.api.startRun(id)]
        runIds.push(...own)
        await delay(random() * lifeMs)
        await server.kill9()
        await server.start()
        for (const runId of own) {
          const ended = async () => {
            const { exitReason } = await server.api.run(runId)
            return exitReason
          }
          reasons.push(await waitFor(ended, `the end of ${runId}`, { ms: 120_000 }))
        }
      }
      process.stderr.write(`${JSON.stringify(Object.groupBy(reasons, (each) => each))}\n`)
      // One that was made for its run died before it was connected: its runner does not come again.
      const hasOwn = (runId: string) => engine.created.some((name) => name.startsWith(`svc-${runId}-`))
      const known = (runId: string) => ['completed', 'sandbox_lost', ...(hasOwn(runId) ? ['dispatch_error'] : [])]
      expect(reasons.filter((reason, at) => !known(runIds[at]!).includes(reason))).toEqual([])
      // Each container had one run at most.
      expect(new Set(taken).size).toBe(taken.length)
      expect(engine.peak).toBeLessThanOrEqual(most)
      // No more than there are to be, and each with its volume and its folder.
      const folders = join(server.dataDir, 'sandboxes')
      const isTidy = () => hasNothingOfRuns(engine) && engine.containers.size === 2 && readdirSync(folders).length === 2
      await waitFor(isTidy, 'two that wait, and nothing else', {
        ms: 120_000,
        about: () => [...engine.created.slice(-5), ...engine.volumes, ...readdirSync(folders)].join('\n'),
      })
      await server.end()
      expect([engine.containers.size, engine.volumes.size]).toEqual([0, 0])
      expect(existsSync(folders) ? readdirSync(folders) : []).toEqual([])
    } finally {
      await system.stop()
      await engine.stop()
    }
  },
)
