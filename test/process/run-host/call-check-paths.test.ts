import { idFrom } from '../../../shared/lib/ids.ts'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CallJudge } from '../../../device-manager/run-host/permission/call-judge.ts'
import { machineLinks } from '../../../device-manager/run-host/permission/machine-links.ts'
import { PathLookup } from '../../../shared/permissions/path-lookup.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import type { RunSpec, ToolRule } from '../../../shared/runs/spec.ts'

// The judge of calls on real files and links: what the system would open decides.

let root: string
let home: string
/** The work folder as its agent names it: reached by a link. */
let cwd: string
let realCwd: string
let outside: string

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-call-check-')))
  home = join(root, 'home')
  realCwd = join(root, 'disk', 'work')
  outside = join(root, 'outside')
  for (const folder of [home, join(realCwd, 'src', 'deep'), join(outside, 'notes'), join(root, 'state')])
    mkdirSync(folder, { recursive: true })
  symlinkSync(join(root, 'disk'), join(root, 'mount'))
  cwd = join(root, 'mount', 'work')
  symlinkSync(join(outside, 'notes'), join(home, 'notes'))
  for (const file of [
    join(outside, 'id'),
    join(outside, 'notes', 'a'),
    join(realCwd, 'src', 'a'),
    join(realCwd, '.env'),
  ])
    writeFileSync(file, 'x')
  symlinkSync(outside, join(realCwd, 'src', 'link'))
  symlinkSync('../../../../outside/new', join(realCwd, 'src', 'deep', 'dangling'))
  symlinkSync(outside, join(realCwd, 'lib'))
  symlinkSync('.env', join(realCwd, 'plain.txt'))
  symlinkSync('loop-b', join(realCwd, 'src', 'loop-a'))
  symlinkSync('loop-a', join(realCwd, 'src', 'loop-b'))
  for (let at = 0; at < 60; at++)
    symlinkSync(at === 0 ? '../../../outside' : `chain-${at - 1}`, join(realCwd, 'src', `chain-${at}`))
})
afterAll(() => rmSync(root, { recursive: true }))

interface Rules {
  allow?: ToolRule[]
  ask?: ToolRule[]
  deny?: ToolRule[]
  mode?: 'strict' | 'ask' | 'full'
}
async function gateOf(
  { allow = [], ask = [], deny = [], mode = 'strict' }: Rules,
  lookup = new PathLookup(realWorld, machineLinks),
) {
  const permissions: RunSpec['permissions'] = { allow, ask, deny, defaultMode: mode }
  const place = await lookup.placeOf({
    cwd,
    homeDir: home,
    permissions,
    ownFolders: [join(root, 'state')],
    svcProgram: null,
  })
  const judge = new CallJudge({
    spec: { agent: { id: idFrom('agt_1'), handle: '@ada', name: 'Ada' }, permissions, allowCalls: [] },
    place,
    redactText: (text) => text,
    mayAct: () => true,
    mayAsk: () => true,
    onAsked: () => {},
  })
  return async (name: string, input: unknown, at?: string) => {
    const ask = { askId: '1', toolCallId: null, name, input, ...(at !== undefined && { cwd: at }) }
    const { event, decision } = judge.answer(ask, await judge.lookUp(ask, lookup))
    const { decision: word, ask: asked } = event.data as { decision: string; ask?: { prompt: string } }
    return { word, told: asked?.prompt ?? ('message' in decision ? decision.message : '') }
  }
}
const under = (folder: string) => (path: string) => path.replace(/(?<=^|^file:\/\/)WORK/, folder).replace(/^ROOT/, root)
const inWork = (path: string) => under(cwd)(path)

describe('a rule that allows a folder', () => {
  test.for([
    ['src/a', 'allow'],
    ['WORK/src/a', 'allow'],
    ['WORK/src/not/yet/there', 'allow'],
    ['WORK/src/deep/../a', 'allow'],
    ['ROOT/disk/work/src/a', 'allow'],
    ['WORK/src/link/id', 'deny'],
    ['WORK/src/link/new/file', 'deny'],
    ['WORK/src/link', 'deny'],
    ['WORK/src/link/', 'deny'],
    ['WORK/src/deep/dangling', 'deny'],
    ['WORK/src/deep/dangling/further', 'deny'],
    ['WORK/src/link/../a', 'deny'],
    ['WORK/src/deep/../../.env', 'deny'],
    ['WORK/src/missing/../../.env', 'deny'],
    ['WORK/src/missing/../link/id', 'deny'],
    ['  WORK/src/link/id  ', 'deny'],
    ['WORK/src/loop-a', 'deny'],
    ['WORK/src/loop-a/x', 'deny'],
    ['WORK/src/chain-59/id', 'deny'],
    ['/proc/self/cwd/src/a', 'deny'],
    ['WORK/SRC/a', 'deny'],
    ['~/src/a', 'deny'],
    [`WORK/src/${'x/'.repeat(20_000)}`, 'deny'],
    ['WORK/src/a\0', 'deny'],
    ['file://WORK/src/a', 'allow'],
    ['file://WORK/src/..%2f.env', 'deny'],
    ['file://host/src/a', 'deny'],
    ['file:src/a', 'deny'],
    ['', 'deny'],
  ] as const)('Write(src/**): %s is %s', async ([path, expected]) => {
    const asked = await gateOf({ allow: ['Write(src/**)'] })
    expect((await asked('Write', { file_path: inWork(path).replace('  WORK', `  ${cwd}`) })).word).toBe(expected)
  })

  test('follows a link that the person has outside of the work folder, and none inside of it', async () => {
    const asked = await gateOf({
      allow: ['Read(~/notes/**)', 'Read(lib/**)', `Read(${join(root, 'mount', 'work', 'src', '*')})`],
    })
    expect((await asked('Read', { file_path: '~/notes/a' })).word).toBe('allow')
    expect((await asked('Read', { file_path: join(home, 'notes/a') })).word).toBe('allow')
    expect((await asked('Read', { file_path: join(outside, 'notes/a') })).word).toBe('allow')
    expect((await asked('Read', { file_path: 'src/a' })).word).toBe('allow')
    expect((await asked('Read', { file_path: join(outside, 'id') })).word).toBe('deny')
    expect((await asked('Read', { file_path: 'lib/id' })).word).toBe('deny')
  })

  test('does not follow a folder that was moved away and replaced by a link', async () => {
    const asked = await gateOf({ allow: ['Write(later/**)'] })
    symlinkSync(outside, join(realCwd, 'later'))
    expect((await asked('Write', { file_path: inWork('WORK/later/id') })).word).toBe('deny')
    rmSync(join(realCwd, 'later'))
  })

  test('takes a path that is not absolute from where the harness is now, too', async () => {
    const asked = await gateOf({ allow: ['Edit(src/**)'] })
    expect((await asked('Edit', { file_path: 'src/a' }, cwd)).word).toBe('allow')
    expect((await asked('Edit', { file_path: 'src/a' }, outside)).word).toBe('deny')
  })
})

describe('a rule that forbids a folder', () => {
  test.for([
    ['Read', { file_path: 'ROOT/outside/id' }],
    ['Read', { file_path: 'WORK/src/link/id' }],
    ['Read', { file_path: 'ROOT/OUTSIDE/ID' }],
    ['Read', { file_path: '/proc/self/rootROOT/outside/id' }],
    ['Read', { file_path: '/proc/1/rootROOT/outside/id' }],
    ['Read', { file_path: '/dev/fd/3' }],
    ['Read', { file_path: '~/notes/../id' }],
    ['Read', { file_path: 'file://ROOT/outside/id' }],
    ['Read', { file_path: 'file:src/link/id' }],
    ['Read', { file_path: 'file://src/link/id' }],
    ['Glob', { pattern: 'src/{../../../outside,a}/*' }],
    ['Read', { file_path: ['src/a', 'ROOT/outside/id'] }],
    ['Read', { file_path: { value: 'WORK/src/link/id' } }],
    ['Read', { file_path: 'src/a', path: 'ROOT/outside/id' }],
    ['Read', { other: { paths: [1, 'WORK/lib/id'] } }],
    ['Grep', { pattern: 'x', path: 'ROOT/outside' }],
    ['Grep', { pattern: 'x', path: 'WORK/src/link/' }],
    ['Grep', { pattern: 'x', path: 'ROOT' }],
    ['Grep', { pattern: 'x', path: '/' }],
    ['Glob', { pattern: 'ROOT/out*/*' }],
    ['Glob', { pattern: '*', path: 'WORK/lib' }],
    ['Glob', { pattern: 'link/**', path: 'WORK/src' }],
    ['Glob', { pattern: 'x*/../../../../outside/*' }],
    ['LS', { path: 'ROOT/outside/' }],
    ['mcp__files__move', { source: 'src/a', destination: 'ROOT/outside/b' }],
    ['mcp__files__read', { what: 'ROOT/outside/id' }],
    ['mcp__files__read', { uri: 'file://ROOT/outside/id' }],
    ['mcp__files__read', { targetFile: 'WORK/src/link/id' }],
  ] as const)('*(ROOT/outside/**) denies %s %j', async ([tool, input]) => {
    const asked = await gateOf({ deny: [`*(${outside}/**)`], mode: 'full' })
    const named = JSON.parse(JSON.stringify(input).replaceAll('WORK', cwd).replaceAll('ROOT', root)) as object
    expect((await asked(tool, named)).word).toBe('deny')
  })

  test.for([
    ['Read', { file_path: 'src/a' }],
    ['Read', { file_path: 'missing/file' }],
    ['Grep', { pattern: '/outside/', path: 'WORK/src/deep' }],
    ['Write', { file_path: 'src/b', content: 'ROOT/outside/id' }],
    ['Bash', { command: 'ls' }],
  ] as const)('and leaves %s %j', async ([tool, input]) => {
    const asked = await gateOf({ deny: [`*(${outside}/**)`], mode: 'full' })
    const named = JSON.parse(JSON.stringify(input).replaceAll('WORK', cwd).replaceAll('ROOT', root)) as object
    expect((await asked(tool, named)).word).toBe('allow')
  })

  test('a file by its name, its link, and the folder that is searched', async () => {
    const asked = await gateOf({ deny: ['Read(.env)', 'Grep(**/.env)', 'Edit(src)'], mode: 'full' })
    expect((await asked('Read', { file_path: 'plain.txt' })).word).toBe('deny')
    expect((await asked('Read', { file_path: join(realCwd, '.env') })).word).toBe('deny')
    expect((await asked('Grep', { pattern: 'x' })).word).toBe('deny')
    expect((await asked('Grep', { pattern: 'x', path: 'src/a' })).word).toBe('allow')
    expect((await asked('Edit', { file_path: 'src/deep/x' })).word).toBe('deny')
  })

  test('whoever is asked is told where a link leads', async () => {
    const asked = await gateOf({ mode: 'ask' })
    const { word, told } = await asked('Write', { file_path: 'src/link/id', content: '' })
    expect(word).toBe('ask')
    expect(told).toContain(`leads to ${join(outside, 'id')}`)
  })
})

describe("svc's own files", () => {
  test.for([
    ['Read', { file_path: 'ROOT/state/device-token' }, 'deny'],
    ['Read', { file_path: 'ROOT/State/device-token' }, 'deny'],
    ['Grep', { pattern: 'x', path: 'ROOT' }, 'deny'],
    ['Bash', { command: 'cat ROOT/state/device-token' }, 'deny'],
    ['mcp__any', { deep: [{ thing: 'ROOT/state/x' }] }, 'deny'],
    ['Read', { file_path: 'src/a' }, 'allow'],
  ] as const)('%s %j: %s', async ([tool, input, expected]) => {
    const named = JSON.parse(JSON.stringify(input).replaceAll('ROOT', root)) as object
    for (const mode of ['strict', 'ask'] as const)
      expect((await (await gateOf({ allow: ['*'], mode }))(tool, named)).word).toBe(expected)
    expect((await (await gateOf({ mode: 'full' }))(tool, named)).word).toBe('allow')
  })

  test('a run whose folder lies among them works there', async () => {
    const lookup = new PathLookup(realWorld, machineLinks)
    const permissions: RunSpec['permissions'] = { allow: [], ask: [], deny: [], defaultMode: 'strict' }
    const place = await lookup.placeOf({
      cwd,
      homeDir: home,
      permissions,
      ownFolders: [join(root, 'disk')],
      svcProgram: null,
    })
    const judge = new CallJudge({
      spec: {
        agent: { id: idFrom('agt_1'), handle: '@ada', name: 'Ada' },
        permissions: { ...permissions, allow: ['Read'] },
        allowCalls: [],
      },
      place,
      redactText: (text) => text,
      mayAct: () => true,
      mayAsk: () => true,
      onAsked: () => {},
    })
    const asked = async (file_path: string) => {
      const ask = { askId: '1', toolCallId: null, name: 'Read', input: { file_path } }
      return judge.answer(ask, await judge.lookUp(ask, lookup)).decision.behavior
    }
    expect(await asked(join(cwd, 'src', 'a'))).toBe('allow')
    expect(await asked(join(root, 'disk', 'other'))).toBe('deny')
  })
})

test('a file system that does not answer ends in a denial, and nothing waits behind it', async () => {
  const asleep: (() => void)[] = []
  const world = { ...realWorld, after: (_ms: number, wake: () => void) => (asleep.push(wake), () => {}) }
  let looked = 0
  const hangs = () => (looked++, new Promise<never>(() => {}))
  const lookup = new PathLookup(world, { readlink: hangs, isFolder: hangs })
  const wake = () => asleep.splice(0).forEach((each) => each())
  const waking = gateOf({ allow: ['Read(src/**)'] }, lookup)
  wake()
  const asked = await waking
  const first = asked('Read', { file_path: 'src/a', paths: Array.from({ length: 50 }, (_, at) => `src/${at}`) })
  wake()
  expect(await first).toMatchObject({ word: 'deny', told: expect.stringContaining('did not answer') })
  expect(await asked('Read', { file_path: 'src/a' })).toMatchObject({ word: 'deny' })
  expect(looked).toBe(2)
  expect(lookup.hanging).toBe(2)
  // What needs no file system is answered as ever.
  expect(await asked('Task', { prompt: 'x' })).toMatchObject({ told: expect.stringContaining('no rule allows it') })
})
