import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { IsolationState } from '../../../shared/device/isolation.ts'
import { isLong } from '../../kit/forms.ts'
import { hasBubblewrap } from '../../kit/wall.ts'
import { programFile } from '../../kit/program-file.ts'
import { waitFor } from '../../kit/programs.ts'
import { makeRepo } from '../../kit/system-scenario.ts'
import { TestSystem } from '../../kit/system.ts'

// The wall as the owner of a device meets it: real control plane, real daemon, real `svc` inside the runs.

beforeEach(({ skip }) => {
  if (process.platform !== 'linux') skip('namespaces are of Linux')
})

const level = process.getuid?.() === 0 ? 'partial' : 'full'
const run = promisify(execFile)

describe('a device', () => {
  let system: TestSystem
  let folder: string
  beforeAll(async () => {
    system = await TestSystem.start({ device: { isWalled: true } })
    folder = join(system.root, 'repo')
    makeRepo(folder)
  })
  afterAll(() => system.stop())

  const secret = () => readFileSync(join(system.device.stateDir, 'device-token'), 'utf8').trim()
  const chosen = async () => (await system.device.status()).isolation

  async function said(command: string): Promise<string> {
    const { api, device } = system
    const { shortId } = await api.addFolder({
      displayName: crypto.randomUUID(),
      rootPath: folder,
      deviceId: device.identity.publicId,
    })
    const agent = await api.createAgent({
      name: `a-${crypto.randomUUID()}`,
      harness: 'command',
      defaultFolderId: shortId,
      command,
    })
    const runId = await api.startRun(agent.id)
    await api.waitForRun(runId, 'succeeded')
    const texts = (await api.events(runId)).filter(({ kind }) => kind === 'text')
    return texts.map(({ data }) => (data as { text: string }).text).join('')
  }

  test('has the wall by default, keeps that, and tells the server', async () => {
    const state = await waitFor(async () => {
      const now = await chosen()
      return now.choice === null ? null : now
    }, 'the trial is over')
    expect(state).toMatchObject({ choice: 'svc', level, tool: hasBubblewrap ? 'bwrap' : 'unshare' })
    expect(JSON.parse(readFileSync(join(system.device.stateDir, 'settings.json'), 'utf8'))).toMatchObject({
      isolation: 'svc',
      folders: { [system.device.stateDir]: expect.stringMatching(/^\d+:\d+$/) },
    })
    await waitFor(async () => {
      const [device] = await system.api.devices()
      const readiness: { isolation?: string | undefined } | undefined = device?.providerReadiness
      return readiness?.isolation === level
    }, 'the server knows')
  })

  test('a run cannot change that: not as it is, and not as somebody else', async () => {
    const output = await said(`exec 2>&1
      svc device set --isolation off; echo "refused $?"
      unset SVC_TOKEN SVC_RUN_ID
      SVC_STATE_DIR='${system.device.stateDir}' svc device set --isolation off; echo "no daemon $?"
      rm -f '${system.device.stateDir}/settings.json'; echo '{"isolation":"off"}' >'${system.device.stateDir}/settings.json'
      find '${system.root}' \\( -name daemon.sock -o -name device-token -o -name spool.db \\) 2>/dev/null; echo looked`)
    expect(output).toContain('A run cannot change how runs are isolated.')
    expect(output).toMatch(/refused 1\b/)
    expect(output).toMatch(/no daemon 9\b/)
    expect(output.trim().split('\n').at(-1)).toBe('looked')
    expect(await chosen()).toMatchObject({ choice: 'svc', level })
  })

  test('what a run leaves in the profile is not run outside by the daemon either', async () => {
    const found = join(system.root, 'found')
    const profile = `cat '${system.device.stateDir}/device-token' >>'${found}' 2>&1; echo asked >>'${found}'`
    await said(`cat > "$HOME/.profile" <<'END'\n${profile}\nEND`)
    // The shell is asked some time after a run began, which may have been before this one wrote the profile.
    await said('true')
    await waitFor(() => existsSync(found) && readFileSync(found, 'utf8').includes('asked'), 'the shell was asked')
    expect(readFileSync(found, 'utf8')).not.toContain(secret())
    rmSync(join(system.device.homeDir, '.profile'))
  })

  test('a run cannot write to the programs of svc, which the next run host executes outside of the wall', async () => {
    const main = programFile('device-manager/run-host')
    const release = dirname(dirname(dirname(main)))
    const checkout = join(import.meta.dirname, '../../..')
    const before = readdirSync(release)
    const output = await said(`exec 2>&1
      { true >>'${main}'; } && echo wrote
      touch '${release}/planted' '${dirname(release)}/planted' '${checkout}/node_modules/planted' '${checkout}/scripts/planted' && echo wrote
      mv '${release}' '${release}-away' && mv '${release}-away' '${release}' && echo wrote
      mv '${process.execPath}' '${process.execPath}-away' && mv '${process.execPath}-away' '${process.execPath}' && echo wrote
      echo tried`)
    expect(output.trim().split(/\r?\n/).at(-1)).toBe('tried')
    expect(output).not.toContain('wrote')
    expect(readdirSync(release)).toEqual(before)
  })

  test('its owner takes the wall away and puts it back', async () => {
    const look = `cat '${system.device.stateDir}/device-token' | wc -c`
    expect(await system.device.control({ op: 'set_isolation', isolation: 'off' })).toMatchObject({ level: 'off' })
    expect(Number(await said(look))).toBeGreaterThan(1)
    expect(await system.device.control({ op: 'set_isolation', isolation: 'svc' })).toMatchObject({ level })
    expect(Number((await said(`${look} 2>/dev/null`)).split('\n').at(-2))).toBe(0)
  })
})

describe('a machine that lets no namespaces be made', () => {
  const script = (stateDir: string) => `
    import { Isolation } from '${join(import.meta.dirname, '../../../device-manager/isolation/isolation.ts')}'
    import { placesIn } from '${join(import.meta.dirname, '../../../device-manager/setup/places.ts')}'
    import { realWorld as world } from '${join(import.meta.dirname, '../../../shared/lib/world.ts')}'
    const none = () => undefined
    const log = { debug: none, info: none, warn: none, error: none, close: none }
    const isolation = new Isolation({ places: placesIn('${stateDir}'), hidden: [], doors: [], executed: async () => ({ paths: { always: [], checkout: null }, gaps: [] }), world, log, changed: none })
    let wall
    try { wall = await isolation.forRun() } catch (error) { wall = error.message }
    let set
    try { set = await isolation.set('svc') } catch (error) { set = error.message }
    process.stdout.write(JSON.stringify({ state: isolation.describe(), wall, set }))`

  async function there(settings: string | null) {
    const stateDir = mkdtempSync(join(tmpdir(), 'svc-no-wall-'))
    onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }))
    mkdirSync(join(stateDir, 'hosts'))
    if (settings !== null) writeFileSync(join(stateDir, 'settings.json'), settings)
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
    const forbid = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    const inside = ['--user', '--map-root-user', '/bin/sh', '-c', forbid, 'sh', ...node, script(stateDir)]
    const { stdout } = await run('unshare', inside)
    return JSON.parse(stdout) as { state: IsolationState; wall: unknown; set: unknown }
  }

  test('runs without a wall where nobody chose one, says so, and takes no choice that it cannot keep', async () => {
    const { state, wall, set } = await there(null)
    expect(wall).toBe(null)
    expect(state).toMatchObject({ choice: null, level: 'off', tool: null })
    expect(state.message).toContain('could not be made')
    expect(set).toContain('No wall can be made on this machine')
  })

  test.each(['{"isolation":"svc"}', '{"isolation":', ...(isLong ? ['{"isolation":"of"}'] : [])])(
    'starts nothing where the wall was chosen, or the choice cannot be read: %s',
    async (settings) => {
      const { state, wall } = await there(settings)
      expect(wall).toContain('svc device set --isolation off')
      expect(state).toMatchObject({ choice: 'svc', level: 'off' })
    },
  )

  test('runs where its owner wants no wall', async () => {
    expect(await there('{"isolation":"off"}')).toMatchObject({ wall: null, state: { choice: 'off', level: 'off' } })
  })
})
