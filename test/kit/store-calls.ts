import { mkdirSync, readdirSync, readFileSync, writeFileSync, globSync } from 'node:fs'
import { Session, type Profiler } from 'node:inspector/promises'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, inject, type RunnerTestSuite } from 'vitest'

/**
 * Measures which functions of the stores the tests in `test/store` call, as V8 counts them. Each file writes down its own when
 * it ends; the last one to end, whichever it is, fails when an exported function was called by none. A run of some of the
 * files or tests says nothing.
 */
const storeFiles = () => globSync('control-plane/**/{store,*-store}.ts')
const testFiles = () => globSync('test/store/*.test.ts').map((file) => basename(file))

/** For a file of `test/store`: counts from its first test to its last. */
export function countStoreCalls(): void {
  let session: Session
  beforeAll(async () => {
    session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  })
  // oxlint-disable-next-line no-empty-pattern
  afterAll(async ({}, file) => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    await session.post('Profiler.stopPreciseCoverage')
    session.disconnect()
    if (!isWhole(file)) return
    const folder = join(inject('databases').folder, 'store-calls')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, file.name.split('/').at(-1)!), JSON.stringify(calledIn(result)))
    const ended = readdirSync(folder)
    if (testFiles().some((name) => !ended.includes(name))) return
    const called = new Set(ended.flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as string[]))
    const exported = await exportsOfStores()
    if (exported.length < 100) throw new Error('the stores are not where this looks for them')
    const missing = exported.filter((name) => !called.has(name))
    if (missing.length > 0)
      throw new Error(`No test in test/store calls ${missing.join(', ')}: write one with \`onBoth\`.`)
  })
}

/** Not where only some tests were asked for; those on PostgreSQL are left out where it is not installed. */
const isWhole = ({ tasks }: Pick<RunnerTestSuite, 'tasks'>) =>
  tasks.every(({ mode, name }) => mode === 'run' || name.endsWith('(postgres)'))

/** `control-plane/resources/agents/store.ts findAgent` */
function calledIn(scripts: Profiler.ScriptCoverage[]): string[] {
  return storeFiles().flatMap((file) =>
    scripts
      .filter(({ url }) => url.endsWith(`/${file}`))
      .flatMap(({ functions }) => functions)
      .filter(({ functionName, ranges }) => functionName !== '' && ranges[0]!.count > 0)
      .map(({ functionName }) => `${file} ${functionName}`),
  )
}

async function exportsOfStores(): Promise<string[]> {
  const all = await Promise.all(
    storeFiles().map(async (file) => {
      const module = (await import(join(process.cwd(), file))) as Record<string, unknown>
      const functions = Object.entries(module).filter(([, value]) => typeof value === 'function')
      return functions.map(([name]) => `${file} ${name}`)
    }),
  )
  return all.flat()
}
