import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkProgram } from '../../../control-plane/workflows/program/check.ts'
import { compileProgram } from '../../../control-plane/workflows/engine/compile.ts'
import { createInstance } from '../../../control-plane/workflows/engine/instance.ts'
import { assetUrl } from '../../../shared/lib/program-file.ts'

/** The programs in the documentation can be stored as they stand there. */
const text = readFileSync(join(import.meta.dirname, '../../../docs/workflows.md'), 'utf8')
const examples = [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, program]) => program!)
const wasm = new WebAssembly.Module(readFileSync(assetUrl('quickjs.wasm')))

it.each(examples.map((program) => [program.slice(0, 60), program]))('%s', async (_, program) => {
  expect(checkProgram(program)).toHaveProperty('meta.name')
  expect(compileProgram(await createInstance(wasm), program)).toBeNull()
})

it('there are some', () => expect(examples.length).toBeGreaterThan(0))
