import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { outputOf } from '../../kit/invariants.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestSystem } from '../../kit/system.ts'
import { Checkout } from '../checkout/checkout.ts'

// A harness is a folder and a row: what docs/harness-guide.md says of adding one is done here, in a copy of the checkout.

const checkout = new Checkout()
let system: TestSystem | null = null
afterAll(async () => {
  await system?.stop()
  await checkout.remove()
})

function edit(file: string, change: (text: string) => string): void {
  const path = join(checkout.code, file)
  const text = readFileSync(path, 'utf8')
  const changed = change(text)
  expect(changed, file).not.toBe(text)
  writeFileSync(path, changed)
}

const adapter = `
import type { HarnessAdapter } from '../adapter.ts'
import { commandDialogue } from '../command/dialogue.ts'

export const nothingAdapter: HarnessAdapter = {
  name: 'nothing',
  can: { resume: false, input: false, ask: false },
  detect: () => Promise.resolve({ installed: true, version: '1', signedIn: null, message: null }),
  command: (spec) => ({ file: '/bin/echo', args: ['nothing was made of: ' + spec.prompt], env: {}, io: 'pty', files: [] }),
  dialogue: () => commandDialogue(),
}
`

const row = `  nothing: {
    label: 'Nothing',
    programs: ['echo'],
    models: 'any',
    modelNames: /^nothing-/,
    takesProviders: false,
    keyNames: [],
    runsOwnCommand: false,
    keepsSessions: false,
    callsTools: false,
    tools: [],
    holdsStrict: true,
    ignores: [],
    speaksFirst: false,
  },
`

test('a harness that is added as a folder, a row and a name in the registry runs to its end', async () => {
  const folder = 'device-manager/harness'
  mkdirSync(join(checkout.code, folder, 'nothing'))
  writeFileSync(join(checkout.code, folder, 'nothing/adapter.ts'), adapter)
  edit(join(folder, 'registry.ts'), (text) =>
    text
      .replace('import ', "import { nothingAdapter } from './nothing/adapter.ts'\nimport ")
      .replace('claude: claudeAdapter,', 'nothing: nothingAdapter,\n  claude: claudeAdapter,'),
  )
  edit('shared/runs/harnesses.ts', (text) => text.replace('  command: {\n', `${row}  command: {\n`))
  // Bundled as a release is; the tests of the checkout show releases.
  const programs = join(checkout.code, 'dist')
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'scripts/build.ts'], { cwd: checkout.code })
  system = await TestSystem.start({ programs: { server: programs, device: programs } })

  // By its model alone: nothing else says which harness it is.
  const agent = await system.api.createAgent({ name: 'Nil', model: 'nothing-1' })
  const { api } = system
  const found = await waitFor(async () => {
    const { providerReadiness } = (await api.devices())[0]!
    return 'harnesses' in providerReadiness ? providerReadiness.harnesses : null
  }, 'the device says which harnesses it has')
  expect(found).toMatchObject({ nothing: { installed: true } })
  const runId = await system.api.startRun(agent.id, 'the sea')
  const run = await system.api.waitForRun(runId, 'succeeded')
  expect(run).toMatchObject({ harness: { id: 'nothing' }, exitReason: 'completed' })
  expect(outputOf(await system.api.events(runId)).output.toString()).toContain('nothing was made of: the sea')
})
