import { execFile } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { placesIn } from '../../../device-manager/setup/places.ts'
import { Isolation } from '../../../device-manager/isolation/isolation.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { becomeUser } from '../../kit/nobody.ts'
import { wallSpecOf } from '../../kit/wall.ts'

// A run that moves what the wall hides, so that the next one finds it elsewhere. As root the test becomes an ordinary user.

const run = promisify(execFile)
const ordinary = 1234
const moduleAt = (path: string) => join(import.meta.dirname, '../../..', path)

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-moved-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

describe.each(linuxTools)('behind the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  /** A login and a state folder where they usually are; `.config` may be a link to a folder beside it. */
  function furnish(config: string): void {
    const folders = [config, `${config}/svc`, '.local', '.local/state', '.local/state/svc', '.local/state/svc/hosts']
    for (const folder of folders) mkdirSync(join(home, folder))
    if (config !== '.config') symlinkSync(config, join(home, '.config'))
    writeFileSync(join(home, config, 'svc/login.json'), 'the login')
    writeFileSync(join(home, '.local/state/svc/device-token'), 'the token')
    const files = [...folders, `${config}/svc/login.json`, '.local/state/svc/device-token', '.']
    if (process.getuid?.() === 0) for (const file of files) chownSync(join(home, file), ordinary, ordinary)
  }

  /** Returns what each of `looks` says behind a wall of its own, one after the other; a wall that is not made says why. */
  async function runsOneAfterAnother(looks: readonly string[]): Promise<string[]> {
    const spec = wallSpecOf(join(home, '.local/state/svc'), tool, [join(home, '.config/svc')])
    const script = `
      import { spawnSync } from 'node:child_process'
      import { makeWall } from '${moduleAt('device-manager/wall/wall.ts')}'
      import { realWorld } from '${moduleAt('shared/lib/world.ts')}'
      ${becomeUser(ordinary)}
      const env = { PATH: '/usr/bin:/bin' }
      const said = []
      for (const look of ${JSON.stringify(looks)}) {
        try {
          const wall = await makeWall(${JSON.stringify(spec)}, [], realWorld)
          const args = ['-c', 'exec 2>&1; ' + look]
          const entered = wall.enter({ file: '/bin/sh', args, env, cwd: '${home}', report: '/dev/null' })
          said.push(spawnSync(entered.file, entered.args, { env, encoding: 'utf8' }).stdout)
          await wall.end()
        } catch (error) {
          said.push(error.constructor.name + ': ' + error.message)
        }
      }
      process.stdout.write(JSON.stringify(said))
      process.exit(0)`
    const node = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
    return JSON.parse((await run(process.execPath, [...node, script])).stdout) as string[]
  }

  test('a run cannot move or remove the folders above, and works in them as before', async () => {
    furnish('.config')
    const [first, second] = await runsOneAfterAnother([
      `for each in .config .local .local/state; do mv $each $each-away && echo got away; done
      mkdir -p other && mv -T --exchange .config other 2>/dev/null && echo got away; rm -rf .config .local
      unshare --user --map-root-user --mount sh -c "umount -l .config; mv .config .config-away && echo got away; mv .local .local-away && echo got away"
      echo mine >.config/mine; mv .config/mine .local/mine && ln .local/mine .local/again && mkdir .config/tool && rmdir .config/tool && echo worked`,
      'find . -name login.json -o -name device-token; cat .local/again; echo looked',
    ])
    expect(first).not.toContain('got away')
    expect(first).toMatch(/worked\n$/)
    expect(second).toBe('mine\nlooked\n')
    expect(readFileSync(join(home, '.config/svc/login.json'), 'utf8')).toBe('the login')
  })

  test.each([
    ['rm .config && mkdir -p .config/svc', 'is not the folder that it was'],
    ['rm .config', 'is gone'],
  ])('no wall is made once a link on the way leads elsewhere: %s', async (attack, why) => {
    furnish('dotfiles')
    const [first, ...later] = await runsOneAfterAnother([attack, 'cat dotfiles/svc/login.json', 'echo still'])
    expect(first).toBe('')
    for (const said of later) {
      expect(said).toMatch(/^WallError: /)
      expect(said).toContain(`.config/svc, which svc hides from runs, ${why}`)
    }
  })
})

test('a folder that is gone is not made again, and starts no run until the owner of the device says so', async (context) => {
  needsTool('unshare', context)
  const stateDir = join(home, 'state')
  const login = join(home, 'login')
  mkdirSync(stateDir)
  const none = () => undefined
  const log = { debug: none, info: none, warn: none, error: none, close: none }
  const executed = async () => ({ paths: { always: [], checkout: null }, gaps: [] })
  const device = () =>
    new Isolation({
      places: placesIn(stateDir),
      hidden: [login],
      doors: [],
      executed,
      world: realWorld,
      log,
      changed: none,
    })
  const first = device()
  expect(await first.forRun()).toMatchObject({ stateDir, marks: { [login]: expect.any(String) } })
  renameSync(login, `${login}-away`)
  for (const each of [first, device()]) {
    await expect(async () => each.forRun()).rejects.toThrow(`${login}, which svc hides from runs, is gone`)
    expect(each.describe()).toMatchObject({ choice: 'svc', level: 'off' })
    expect(existsSync(login)).toBe(false)
  }
  const last = device()
  expect(await last.set('svc')).toMatchObject({ choice: 'svc', level: process.getuid?.() === 0 ? 'partial' : 'full' })
  expect(existsSync(login)).toBe(true)
  for (const each of [last, device()]) expect(await each.forRun()).not.toBe(null)
})
