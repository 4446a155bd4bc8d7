import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawMutants, type Drawn } from './mutate/draw.ts'
import { Copy, type Verdict } from './mutate/judge.ts'
import { targetOf } from './mutate/targets.ts'

/**
 * Asks whether the tests notice wrong code: changes the files of `mutate/targets.ts`, one place at a time and in a copy of the
 * checkout, and names each change with which all tests still pass.
 *
 *     MUTANTS=200 MUTATE_SEED=7 node scripts/mutate.ts [PATH...]
 *
 * `MUTANTS` says how many are drawn, by a seed that is printed; a path keeps to the files whose names begin so. Exits with 1
 * where a change was not noticed.
 */
const root = join(import.meta.dirname, '..')
const count = numberOf('MUTANTS', 100)
const seed = String(numberOf('MUTATE_SEED', Date.now() % 2 ** 31))
const paths = process.argv.slice(2)

function numberOf(name: string, otherwise: number): number {
  const text = process.env[name] ?? String(otherwise)
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new Error(`${name} is a whole number, and not ${JSON.stringify(text)}.`)
}

function textsOf(): Map<string, string> {
  const listed = execFileSync('git', ['ls-files', '-z', '*.ts'], { cwd: root, encoding: 'utf8' }).split('\0')
  const begins = (file: string) => paths.length === 0 || paths.some((path) => file.startsWith(path))
  const files = listed.filter((file) => targetOf(file) !== null && begins(file))
  if (files.length === 0) throw new Error('No file that scripts/mutate/targets.ts lists begins so.')
  return new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]))
}

/** Asks the near tests first, and the far ones only when the mutant lived. */
async function judge(copy: Copy, { file, mutant }: Drawn): Promise<Verdict> {
  const { near, far } = targetOf(file)!
  const verdict = await copy.judge(file, mutant, near)
  return verdict === 'lived' && far !== undefined ? copy.judge(file, mutant, far) : verdict
}

const drawn = drawMutants(textsOf(), { count, seed })
console.log(`${drawn.length} mutants, MUTATE_SEED=${seed}`)
const scores = new Map<string, { noticed: number; all: number }>()
const copy = new Copy(root)
process.on('exit', () => copy.remove())
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
for (const each of drawn) {
  const verdict = await judge(copy, each)
  const score = scores.get(each.file) ?? { noticed: 0, all: 0 }
  scores.set(each.file, { noticed: score.noticed + (verdict === 'lived' ? 0 : 1), all: score.all + 1 })
  if (verdict === 'lived') console.log(`${each.file}:${each.mutant.line}: not noticed: ${each.mutant.what}`)
}
await copy.checkTests()
for (const [file, { noticed, all }] of scores) console.log(`${noticed}/${all} ${file}`)
const lived = [...scores.values()].reduce((sum, { noticed, all }) => sum + all - noticed, 0)
console.log(`${drawn.length - lived} of ${drawn.length} were noticed`)
// The process that runs the tests would keep this one alive.
process.exit(lived > 0 ? 1 : 0)
