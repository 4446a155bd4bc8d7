import { isLong } from '../kit/forms.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { Deployment } from '../kit/compose.ts'
import { waitFor } from '../kit/programs.ts'
import { buildDeployment, buildImage, missingCompose } from '../kit/sandbox-engine.ts'
import { engineClient, hasNoEngine } from '../kit/sandboxes.ts'

// `control-plane/deploy/compose.yaml` on a real engine, as it lies there.

describe.skipIf(hasNoEngine || missingCompose() !== null)('the compose file', () => {
  let there: Deployment
  beforeAll(async () => {
    await buildDeployment(inject('sandboxEngine')!.socket)
    there = new Deployment()
    await there.up()
  })
  afterAll(() => there.remove())

  test('brings up a control plane and PostgreSQL, and a cloud run ends there', async () => {
    const runId = await wake(there, 'echo here; svc whoami')
    expect(await there.api.waitForRun(runId, 'succeeded')).toMatchObject({
      exitReason: 'completed',
      environment: { type: 'cloud' },
    })
    const text = await textOf(there, runId)
    expect(text).toContain('here')
    expect(text).toContain(`"runId":"${runId}"`)
    // What the engine starts of the server: neither root, nor able to write beside its data.
    const inside = 'id -u; touch /opt/svc/x 2>/dev/null || echo read-only; svc-server company list'
    const [uid, root, companies] = (await there.compose('exec', '-T', 'server', 'sh', '-c', inside)).split('\n')
    expect([uid, root]).toEqual(['1000', 'read-only'])
    expect(JSON.parse(companies!)).toBeTruthy()
    const rows = ['psql', '--username=svc', '--no-align', '--tuples-only', '--command=SELECT count(*) FROM runs']
    const password = `PGPASSWORD=${there.settings['SVC_POSTGRES_PASSWORD']}`
    expect(await there.compose('exec', '-T', '-e', password, 'postgres', ...rows)).toBe('1')
    // Its socket alone lets nobody in.
    await expect(there.compose('exec', '-T', 'postgres', ...rows, '--no-password')).rejects.toThrow('no password')
    // It makes a container by itself, with a folder that the engine has to find.
    expect(await there.compose('exec', '-T', 'server', 'svc-server', 'sandbox', 'doctor')).toContain('wall')
    await removed(runId)
  })

  if (isLong)
    test('a newer server takes over in the middle of a cloud run, which goes on and ends once', async () => {
      const line = 'i=$((i+1)); echo "line $i."; sleep 0.1'
      const runId = await wake(there, `i=0; until svc agent list 2>&1 | grep -q Goer; do ${line}; done; echo last`)
      await waitFor(async () => (await textOf(there, runId)).includes('line 1.'), 'its first line')
      const before = await there.api.run(runId)
      const [containers, server, postgres] = await Promise.all([
        containersOf(runId),
        there.compose('ps', '--quiet', 'server'),
        there.compose('ps', '--quiet', 'postgres'),
      ])

      there.settings['SVC_SERVER_IMAGE'] = await newerServer()
      await there.up()
      expect(await there.compose('ps', '--quiet', 'server')).not.toBe(server)
      expect(await there.compose('ps', '--quiet', 'postgres')).toBe(postgres)
      expect(await containersOf(runId)).toEqual(containers)
      expect(await there.api.run(runId)).toMatchObject({ status: 'running', completedAt: null })
      // The run asks for this, so its own requests have to reach the new server.
      await there.api.createAgent({ name: 'Goer', harness: 'command', environment: 'cloud', command: 'true' })

      const run = await there.api.waitForRun(runId, 'succeeded')
      expect(run).toMatchObject({ exitReason: 'completed', sandbox: before.sandbox })
      const events = await there.api.events(runId)
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
      expect(events.filter(({ kind }) => kind === 'ended')).toHaveLength(1)
      expect(events.filter(({ kind }) => kind === 'gap')).toEqual([])
      const text = await textOf(there, runId)
      const lines = [...text.matchAll(/line (\d+)\./g)].map(([, number]) => Number(number))
      expect(lines).toEqual(lines.map((_, at) => at + 1))
      expect(text.trimEnd()).toMatch(/last$/)
      await removed(runId)
    })

  test('does not begin without a password and an address, and says what is missing', async () => {
    for (const name of ['SVC_POSTGRES_PASSWORD', 'SVC_PUBLIC_URL']) {
      const value = there.settings[name]!
      there.settings[name] = ''
      await expect(there.compose('config')).rejects.toThrow(`${name} must be`)
      there.settings[name] = value
    }
  })
})

async function wake({ api }: Deployment, command: string): Promise<string> {
  const cloudy = { name: 'Cloudy', harness: 'command', environment: 'cloud', toolPermissionMode: 'full', command }
  return api.startRun((await api.createAgent(cloudy)).id)
}

const textOf = async ({ api }: Deployment, runId: string): Promise<string> =>
  (await api.events(runId)).map((event) => (event.kind === 'text' ? event.data.text : '')).join('')

/** The ids of those that the engine has, whether they run or not. */
async function containersOf(runId: string): Promise<string[]> {
  const filters = JSON.stringify({ label: [`svc.run=${runId}`] })
  const reply = await engineClient().call({ method: 'GET', path: '/containers/json', query: { all: '1', filters } })
  return (JSON.parse(reply.body.toString()) as { Id: string }[]).map(({ Id }) => Id)
}

const removed = (runId: string) =>
  waitFor(async () => (await containersOf(runId)).length === 0, 'an engine without the container of the run')

/** The same programs in another image. */
async function newerServer(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-i-'))
  writeFileSync(join(folder, 'Dockerfile'), 'FROM svc-server\nLABEL svc.newer=yes\n')
  await buildImage(inject('sandboxEngine')!.socket, 'svc-server-newer', folder)
  rmSync(folder, { recursive: true, force: true })
  return 'svc-server-newer'
}
