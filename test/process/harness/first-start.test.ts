import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { firstStartFolder, FirstStarts } from '../../../device-manager/harness/first-start.ts'
import type { ProbeTalk } from '../../../device-manager/harness/adapter.ts'
import { harnessProbe } from '../../../device-manager/harness/probe.ts'
import { realWorld } from '../../../shared/lib/world.ts'

/** A device whose `codex` is this script; `$H` is the home that it is given. */
function deviceWith(script: string, talk?: () => ProbeTalk) {
  const root = mkdtempSync(join(tmpdir(), 'svc-first-start-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const stateDir = join(root, 'state')
  const program = join(root, 'codex')
  writeFileSync(program, `#!/bin/sh\necho begun >> ${root}/starts\n${script}\n`)
  chmodSync(program, 0o755)
  const warned: object[] = []
  const make = (edition = 1) =>
    new FirstStarts({
      stateDir,
      world: realWorld,
      log: { warn: (about: unknown) => void warned.push(about as object) },
      harnesses: [
        {
          name: 'codex',
          firstStart: {
            edition,
            args: [],
            ...(talk && { talk }),
            env: (home) => ({ H: home }),
            keeps: (name) => name.endsWith('.db'),
          },
        },
      ],
      within: ({ home, env }, use) =>
        use(harnessProbe({ env: { PATH: `${root}:${process.env['PATH']}`, ...env }, homeDir: home })),
    })
  return {
    make,
    warned,
    all: join(stateDir, 'first-starts'),
    kept: (version: string) => firstStartFolder(stateDir, { name: 'codex', version, firstStart: { edition: 1 } }),
    starts: () => readFileSync(join(root, 'starts'), 'utf8').trim().split('\n').length,
  }
}
const found = (version: string | null) => ({ codex: { version } })

test('keeps what a version writes at its first start, once, and forgets what the version before wrote', async () => {
  const device = deviceWith(
    'echo one > "$H/state.db"; echo no > "$H/auth.json"; pwd > "$H/where.db"; ls -A > "$H/seen.db"',
  )
  const starts = device.make()
  await starts.keep(found(null))
  await starts.keep(found('1.2.3'))
  await starts.keep(found('1.2.3'))
  expect(readdirSync(device.kept('1.2.3')).toSorted()).toEqual(['seen.db', 'state.db', 'where.db'])
  // Where it ran was empty, and its own: `ls` saw what it had written itself by then.
  expect(readFileSync(join(device.kept('1.2.3'), 'seen.db'), 'utf8').split('\n')).toEqual([
    'auth.json',
    'seen.db',
    'state.db',
    'where.db',
    '',
  ])
  expect(readFileSync(join(device.kept('1.2.3'), 'where.db'), 'utf8')).toContain(join(device.all, 'codex-new-'))
  // A daemon that ended while it was at this.
  mkdirSync(join(device.all, 'codex-new-left'))
  await device.make().keep(found('1.2.3'))
  expect(device.starts()).toBe(1)
  await starts.keep(found('1.2.4'))
  expect([device.starts(), readdirSync(device.all)]).toEqual([2, ['codex-1.2.4-1']])
  // Back again, as after an upgrade that was no good.
  await starts.keep(found('1.2.3'))
  expect([device.starts(), readdirSync(device.all)]).toEqual([3, ['codex-1.2.3-1']])
  // A release of svc that does more at a first start.
  await device.make(2).keep(found('1.2.3'))
  expect([device.starts(), readdirSync(device.all)]).toEqual([4, ['codex-1.2.3-2']])
  expect(device.warned).toEqual([])
})

describe('a program that is spoken to', () => {
  const script = 'while read -r said; do echo "$said" >> "$H/said.db"; echo noise; echo "{\\"heard\\":$said}"; done'
  const counting = (last: () => string | null) => (): ProbeTalk => ({
    opening: '1\n',
    answer: ({ heard }) => (heard === 3 ? last() : `${Number(heard) + 1}\n`),
  })

  test('is answered line by line until there is no more to say', async () => {
    const device = deviceWith(
      script,
      counting(() => null),
    )
    await device.make().keep(found('1.2.3'))
    expect(readFileSync(join(device.kept('1.2.3'), 'said.db'), 'utf8')).toBe('1\n2\n3\n')
    expect(device.warned).toEqual([])
  })

  test('says what must not be: it is ended, nothing is kept, and why is said', async () => {
    const refused = () => {
      throw new Error('three is too many')
    }
    const device = deviceWith(script, counting(refused))
    await device.make().keep(found('1.2.3'))
    expect([existsSync(device.kept('1.2.3')), readdirSync(device.all)]).toEqual([false, []])
    expect(device.warned).toMatchObject([{ err: { message: 'codex ended with a signal: three is too many' } }])
  })
})

describe('a program that does otherwise', () => {
  test.each([
    ['fails', 'echo half > "$H/state.db"; echo "no room" >&2; exit 3'],
    ['takes the folder away', 'rm -r "$H"; exit 0'],
    ['writes more than each run can copy', 'for i in $(seq 33); do : > "$H/$i.db"; done'],
  ])('%s: nothing is kept, it is said, and it is not tried again', async (_, script) => {
    const device = deviceWith(script)
    const starts = device.make()
    await starts.keep(found('1.2.3'))
    await starts.keep(found('1.2.3'))
    expect([existsSync(device.kept('1.2.3')), readdirSync(device.all), device.starts()]).toEqual([false, [], 1])
    expect(device.warned).toMatchObject([{ harness: 'codex', version: '1.2.3' }])
  })

  test('writes links, folders and heaps under the names of what is kept: they are not', async () => {
    const device = deviceWith(
      'ln -s /etc/passwd "$H/link.db"; mkdir "$H/folder.db"; head -c 9000000 /dev/zero > "$H/heap.db"; mkfifo "$H/pipe.db"; ln "$0" "$H/second-name.db"; : > "$H/plain.db"',
    )
    await device.make().keep(found('1.2.3'))
    expect(readdirSync(device.kept('1.2.3'))).toEqual(['plain.db'])
    expect(device.warned).toEqual([])
  })
})
