import { isLong } from '../kit/forms.ts'
import { expect, inject, onTestFinished, test } from 'vitest'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import type { TriedAct, WallAct } from '../../shared/runs/wall-acts.ts'
import { engineThatMakes, type ContainerBody } from '../kit/opened-engine.ts'
import { cloudServer, endedRun, engineClient, hasNoEngine } from '../kit/sandboxes.ts'
import type { TestServer } from '../kit/server.ts'

const wake = async (server: TestServer): Promise<string> => {
  const agent = { harness: 'command', environment: 'cloud', toolPermissionMode: 'full', command: 'echo it began' }
  const { id } = await server.createAgent(agent)
  return (await server.ok(`/agents/${id}/runs`, { body: { prompt: 'go' } })).runPublicId
}

const triedBy = async (server: TestServer, runId: string) =>
  (await server.ok(`/runs/${runId}/manifest`)).wall as TriedAct[]

test.skipIf(hasNoEngine)(
  'the walls of a sandbox are tried before the run, and its manifest says what was seen',
  async () => {
    const server = await cloudServer()
    const runId = await wake(server)
    expect(await endedRun(server, runId)).toMatchObject({ exitReason: 'completed' })
    const tried = await triedBy(server, runId)
    expect(tried.map(({ act, outcome }) => [act, outcome])).toEqual(
      [
        'write_outside',
        'connect_outside',
        'read_host',
        'ptrace',
        'raw_socket',
        'mount',
        'device',
        'engine_socket',
        'metadata',
        'other_run',
      ].map((act) => [act, 'refused']),
    )
    const seen = Object.fromEntries(tried.map(({ act, seen: text }) => [act, text]))
    expect(seen).toMatchObject({
      write_outside: expect.stringContaining('/etc: EROFS'),
      connect_outside: '192.0.2.1: ENETUNREACH',
      raw_socket: 'a raw socket: EPERM',
      mount: expect.stringContaining('EPERM'),
    })
  },
)

/** What root may do by its name alone, which writing to the volume of another account is not. */
const asRoot = (body: ContainerBody, more: readonly string[] = []) => {
  body.User = '0:0'
  body.HostConfig['CapAdd'] = ['DAC_OVERRIDE', ...more]
}

const makeNetwork = async () => {
  const path = '/networks/create'
  const body = { Name: 'svc-opened', Driver: 'bridge', Internal: true }
  await engineClient().does({ method: 'POST', path, body }, [201])
  onTestFinished(() => void engineClient().call({ method: 'DELETE', path: '/networks/svc-opened' }))
}

const opened: [string, WallAct, (body: ContainerBody) => void][] = [
  ['a network', 'connect_outside', ({ HostConfig }) => (HostConfig['NetworkMode'] = 'svc-opened')],
  ['a writable root', 'write_outside', ({ HostConfig }) => (HostConfig['ReadonlyRootfs'] = false)],
  [
    "the engine's socket",
    'engine_socket',
    (body) => {
      asRoot(body)
      const Source = inject('sandboxEngine')!.socket
      body.HostConfig.Mounts.push({ Type: 'bind', Source, Target: '/run/docker.sock' })
    },
  ],
  [
    'a capability',
    'raw_socket',
    (body) => {
      asRoot(body, ['NET_RAW'])
    },
  ],
  [
    'the right to mount',
    'mount',
    (body) => {
      asRoot(body, ['SYS_ADMIN'])
      Object.assign(body.HostConfig, { SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'] })
    },
  ],
  ['the processes of the machine', 'ptrace', ({ HostConfig }) => (HostConfig['PidMode'] = 'host')],
  [
    'a device',
    'device',
    (body) => {
      asRoot(body, ['SYSLOG'])
      const place = { PathOnHost: '/dev/kmsg', PathInContainer: '/dev/kmsg', CgroupPermissions: 'rwm' }
      body.HostConfig['Devices'] = [place]
    },
  ],
  [
    'a folder of the machine',
    'read_host',
    (body) => {
      asRoot(body)
      body.HostConfig.Mounts.push({ Type: 'bind', Source: '/tmp', Target: '/host/tmp' })
    },
  ],
  [
    'the volume of another run',
    'other_run',
    ({ HostConfig }) =>
      HostConfig.Mounts.push({ Type: 'volume', Source: 'svc-other', Target: `${sandboxPlaces.work}-other` }),
  ],
]

test.skipIf(hasNoEngine).each(isLong ? opened : opened.slice(0, 2))(
  'a sandbox that was made with %s starts nothing',
  async (_what, act, change) => {
    if (act === 'connect_outside') await makeNetwork()
    onTestFinished(async () => void (await engineClient().call({ method: 'DELETE', path: '/volumes/svc-other' })))
    const server = await cloudServer({ settings: { SVC_SANDBOX_SOCKET: await engineThatMakes(change) } })
    const runId = await wake(server)
    const run = await endedRun(server, runId)
    expect(run).toMatchObject({ status: 'failed', exitReason: 'dispatch_error' })
    expect(run['errorMessage']).toMatch(/^The wall around the run does not hold, so it was not started: it could/)
    expect(await triedBy(server, runId)).toContainEqual({ act, outcome: 'not_refused', seen: expect.any(String) })
    const events = JSON.stringify(await server.ok(`/runs/${runId}/events?limit=200`))
    expect(events).not.toContain('it began')
  },
)

test.skipIf(hasNoEngine)(
  'a container that the engine does not start ends its run with the words of the engine',
  async () => {
    const unknown = ({ HostConfig }: ContainerBody) => (HostConfig['NetworkMode'] = 'svc-no-such-network')
    const server = await cloudServer({ settings: { SVC_SANDBOX_SOCKET: await engineThatMakes(unknown) } })
    const run = await endedRun(server, await wake(server))
    expect(run).toMatchObject({ status: 'failed', exitReason: 'dispatch_error' })
    expect(run['errorMessage']).toMatch(/svc-no-such-network/)
  },
)
