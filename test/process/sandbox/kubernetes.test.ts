import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { FakeDevice } from '../../kit/fake-device.ts'
import { KubernetesEngine } from '../../../control-plane/sandbox/kubernetes/engine.ts'
import { freePort } from '../../../scripts/postgres.ts'
import { loseOnce } from '../../kit/fake-runner.ts'
import {
  deviceInPod,
  KubernetesDouble,
  playPod,
  runnerInPod,
  type ClusterFault,
  type DoublePod,
} from '../../kit/kubernetes-double.ts'
import { seededRandom, waitFor } from '../../kit/programs.ts'
import { checkCycles, cycles, cyclesMs, livesOf } from '../../kit/sandbox-cycles.ts'
import { aSpec } from '../../kit/container-spec.ts'
import { TestServer } from '../../kit/server.ts'

// Sandboxes in a cluster that a test has in its hands.

async function stage(play: (pod: DoublePod) => Promise<number>, more: Record<string, string> = {}) {
  const cluster = await new KubernetesDouble(play).start()
  const data = mkdtempSync(join(tmpdir(), 'svc-k-'))
  const port = await freePort()
  const own = { SVC_DATA_DIR: data, SVC_SWEEP_MS: '500', SVC_RATE_LIMIT_PER_MINUTE: '1000000' }
  const server = await TestServer.start({ settings: { ...own, ...cluster.settings(port), ...more } })
  onTestFinished(async () => {
    cluster.fault = () => null
    await waitFor(() => cluster.isEmpty, 'a cluster with nothing left')
    await server.stop()
    await cluster.stop()
    rmSync(data, { recursive: true, force: true })
  })
  const agent = (await server.ok('/agents', {
    body: { name: 'Cloudy', harness: 'command', environment: 'cloud', toolPermissionMode: 'full', command: 'true' },
  })) as { id: string }
  const wake = async () =>
    ((await server.ok(`/agents/${agent.id}/runs`, { body: { prompt: 'go' } })) as { runPublicId: string }).runPublicId
  return { cluster, server, port, wake }
}

const runOf = async (server: TestServer, id: string) =>
  (await server.ok(`/runs/${id}`)) as { exitReason: string | null; errorMessage: string | null; status: string }

const endings = (server: TestServer, runIds: readonly string[]) =>
  waitFor(
    async () => {
      const all = await Promise.all(runIds.map((id) => runOf(server, id)))
      return all.every(({ exitReason }) => exitReason !== null) ? all : null
    },
    'all endings',
    { ms: 90_000, atMostMs: 500 },
  )

test('as many as may be there at once, and all come to their end', async () => {
  const { cluster, server, wake } = await stage(playPod, { SVC_SANDBOX_MAX: '4' })
  const runIds: string[] = []
  for (let count = 0; count < 12; count++) runIds.push(await wake())
  const ends = await endings(server, runIds)
  expect(new Set(ends.map(({ exitReason }) => exitReason))).toEqual(new Set(['completed']))
  expect(cluster.peak).toBeLessThanOrEqual(4)
})

test('the token of the cluster is read anew when it was rotated, and a watch that was forgotten is begun anew', async () => {
  const { cluster, server, wake } = await stage(playPod)
  expect(await endings(server, [await wake()])).toMatchObject([{ exitReason: 'completed' }])
  cluster.rotate('token-2')
  cluster.forget()
  expect(await endings(server, [await wake()])).toMatchObject([{ exitReason: 'completed' }])
})

test('a pod that ran out of memory in mid-run is told from one that is gone', async () => {
  const linked = Promise.withResolvers<{ pod: DoublePod; device: FakeDevice }>()
  const { cluster, server, wake } = await stage(async (pod) => {
    const device = await runnerInPod(pod)
    const run = await device.take()
    await run.events({ kind: 'text', data: { text: 'here' } })
    linked.resolve({ pod, device })
    await device.closed
    return 137
  })
  const runId = await wake()
  const { pod, device } = await linked.promise
  cluster.end(pod, 137, 'OOMKilled')
  await device.disconnect()
  const [run] = await endings(server, [runId])
  expect(run).toMatchObject({ exitReason: 'sandbox_lost' })
  expect(run!.errorMessage).toMatch(/ended with status 137: it ran out of memory \(small, 2 GiB\)/)
})

test('a pod that waits for a node is started once, and asked about no more often than others', async () => {
  const node = Promise.withResolvers<void>()
  const { cluster, server, wake } = await stage(playPod)
  const calls: string[] = []
  cluster.fault = (call) => (calls.push(call), null)
  cluster.placed = () => node.promise
  const runId = await wake()
  await waitFor(() => calls.some((call) => call.startsWith('PATCH')), 'its start')
  await server.world.sleep(2_000)
  expect(calls.filter((call) => call.startsWith('PATCH'))).toHaveLength(1)
  // A look lists jobs and pods; the sweep of this stage looks twice a second.
  expect(calls.length).toBeLessThan(60)
  node.resolve()
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'completed' }])
})

test('a second pod that waits for a node is waited for, too', async () => {
  const lost = Promise.withResolvers<{ pod: DoublePod; device: FakeDevice }>()
  const node = Promise.withResolvers<void>()
  const { cluster, server, wake } = await stage(async (pod) => {
    const device = await runnerInPod(pod)
    const run = await device.take()
    await run.events({ kind: 'text', data: { text: 'here' } })
    lost.resolve({ pod, device })
    await device.closed
    return 137
  })
  const runId = await wake()
  const { pod, device } = await lost.promise
  cluster.placed = () => node.promise
  cluster.end(pod)
  await device.disconnect()
  await waitFor(() => [...cluster.jobs.values()].some((job) => job.pod?.phase === 'Pending'), 'the second pod')
  const jobs = cluster.manifests.length
  await server.world.sleep(1_500)
  expect([cluster.manifests.length, await runOf(server, runId)]).toMatchObject([jobs, { exitReason: null }])
  node.resolve()
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'sandbox_lost' }])
})

test('where pods die that are to tell what a run left, others are tried', async () => {
  const { play, salvages } = loseOnce<DoublePod>(
    { dying: 2 },
    { identityOf: (pod) => pod.identity, enter: deviceInPod },
  )
  const { server, wake } = await stage(play)
  const [run] = await endings(server, [await wake()])
  expect([run, salvages()]).toMatchObject([
    { exitReason: 'sandbox_lost', errorMessage: 'The sandbox of this run ended with status 137.' },
    3,
  ])
})

test.each([
  [{ status: 403, message: 'forbidden: User "svc" cannot create jobs' }, /cannot create jobs/],
  [{ status: 422, message: 'Job is invalid: spec.template' }, /Job is invalid/],
])('what the cluster refuses ends the run with its words (%j)', async (refusal, words) => {
  const { cluster, server, wake } = await stage(playPod)
  cluster.fault = (call) => (call.startsWith('POST') && call.endsWith('/jobs') ? refusal : null)
  const [run] = await endings(server, [await wake()])
  expect(run).toMatchObject({ exitReason: 'dispatch_error' })
  expect(run!.errorMessage).toMatch(words)
})

test('a quota without room is waited for', async () => {
  const { cluster, server, wake } = await stage(playPod)
  const full = { status: 403, message: 'exceeded quota: pods, requested: 1, used: 4, limited: 4', reason: 'Forbidden' }
  cluster.fault = (call) => (call.startsWith('POST') && call.endsWith('/jobs') ? full : null)
  const runId = await wake()
  await waitFor(() => cluster.secrets.size === 1, 'the first try')
  expect(await runOf(server, runId)).toMatchObject({ status: 'queued' })
  cluster.fault = () => null
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'completed' }])
})

test(
  `whatever the cluster does with calls and answers, each of ${cycles} runs ends once and nothing is left`,
  { timeout: cyclesMs + 60_000 },
  async () => {
    const random = seededRandom('cycles of pods')
    const busy = (status: number): ClusterFault => ({ status, message: 'the cluster has a bad day' })
    const faults: readonly ClusterFault[] = ['lost', 'cut', 'garbage', ...[500, 503, 429, 409, 410].map(busy)]
    const play = livesOf<DoublePod>(random, { identityOf: ({ identity }) => identity, enter: deviceInPod })
    const { cluster, server, wake } = await stage(play, { SVC_SANDBOX_MAX: '8' })
    cluster.fault = () => (random() < 0.15 ? faults[Math.floor(random() * faults.length)]! : null)
    await checkCycles(server, { wake, isEmpty: () => cluster.isEmpty })
  },
)

test('what it would refuse is found without making anything', async () => {
  const cluster = await new KubernetesDouble(playPod).start()
  onTestFinished(() => cluster.stop())
  const settings = cluster.settings(1)
  const engine = new KubernetesEngine({
    url: new URL(settings['SVC_SANDBOX_CLUSTER_URL']!),
    tokenFile: settings['SVC_SANDBOX_CLUSTER_TOKEN_FILE']!,
    caFile: settings['SVC_SANDBOX_CLUSTER_CA_FILE']!,
    namespace: settings['SVC_SANDBOX_NAMESPACE']!,
    storageClass: null,
    timeoutMs: 5_000,
  })
  expect(await engine.findTroubles(aSpec)).toEqual([])
  cluster.fault = (call) => (call.endsWith('/jobs') ? { status: 403, message: 'violates PodSecurity' } : null)
  expect(await engine.findTroubles(aSpec)).toEqual([expect.stringMatching(/violates PodSecurity/)])
  expect([cluster.isEmpty, cluster.manifests]).toEqual([true, []])
})

/** Resolves with what came back until the other end closed. */
const sayTo = (port: number, words: string) =>
  new Promise<string>((resolve) => {
    let heard = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(words))
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
    socket.on('error', () => resolve(heard))
    socket.on('close', () => resolve(heard))
  })

test('the port of the brokers answers nobody who does not show the key of a sandbox', async () => {
  const here = Promise.withResolvers<DoublePod>()
  const go = Promise.withResolvers<void>()
  const { server, port, wake } = await stage(async (pod) => {
    here.resolve(pod)
    await go.promise
    return playPod(pod)
  })
  const runId = await wake()
  const { sandbox, key } = (await here.promise).identity.broker!
  const asked = 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const other = `sbx_${'0'.repeat(16)}`
  for (const hello of [
    '',
    `svc-broker ${sandbox} ${'0'.repeat(43)}\n`,
    `svc-broker ${other} ${key}\n`,
    `svc-broker ${sandbox}\n`,
    `svc-broker ${sandbox} ${key} more\n`,
    `${'x'.repeat(100_000)}\n`,
  ])
    expect(await sayTo(port, hello + asked), hello.slice(0, 60)).toBe('')
  expect(await sayTo(port, `svc-broker ${sandbox} ${key}\n${asked}`)).toMatch(/^HTTP\/1\.1 [24]\d\d /)
  // What was asked for does not depend on where the words are cut.
  expect(
    await sayTo(port, `svc-broker ${sandbox} ${key}\nGET http://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n`),
  ).toMatch(/^HTTP\/1\.1 403 /)
  go.resolve()
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'completed' }])
})
