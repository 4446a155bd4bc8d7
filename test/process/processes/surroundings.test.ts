import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../device-manager/setup/config.ts'
import { placesIn } from '../../../device-manager/setup/places.ts'
import { Surroundings } from '../../../device-manager/daemon/surroundings.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'
import { until } from './family.ts'

/** A shell that says how often it was asked, with its answer in the environment. */
function makeShell(folder: string): { shell: string; asked: () => number } {
  const shell = join(folder, 'shell')
  const count = join(folder, 'count')
  writeFileSync(count, '')
  writeFileSync(shell, `#!/bin/sh\necho asked >> ${count}\nLANG=look-$(wc -l < ${count}) exec /bin/sh "$@"\n`)
  chmodSync(shell, 0o755)
  return { shell, asked: () => readFileSync(count, 'utf8').split('\n').length - 1 }
}

test('runs that begin together take what is known, and are followed by one look at the shell', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-surroundings-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { shell, asked } = makeShell(folder)
  const due: (() => void)[] = []
  let laterMs = 0
  const world: World = {
    ...realWorld,
    monotonic: () => realWorld.monotonic() + laterMs,
    after(ms, run) {
      if (ms !== 2_000) return realWorld.after(ms, run)
      due.push(run)
      return () => undefined
    },
  }
  const nothing = () => undefined
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing, close: nothing }
  const config = readConfig({ SVC_STATE_DIR: join(folder, 'state') }, { homeDir: folder, shell })
  const surroundings = new Surroundings({
    isolation: { forRun: () => null },
    config,
    places: placesIn(config.stateDir),
    world,
    log,
  })
  expect((await surroundings.env())['LANG']).toBe('look-1')
  for (let run = 0; run < 3; run++) expect(await surroundings.env()).toMatchObject({ LANG: 'look-1' })
  expect([due.length, asked()]).toEqual([1, 1])
  // So late that the look waits for no idle processor.
  laterMs = 60_000
  due.shift()?.()
  await until(() => asked() === 2)
  await surroundings.probe()
  // What the shell says now is for the runs after; each of them brings the next look.
  expect(await surroundings.env()).toMatchObject({ LANG: 'look-2' })
  expect(due.length).toBe(1)
})
