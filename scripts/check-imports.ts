import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { floorProblems } from './check-floors.ts'
import { cliFloors, deviceManagerFloors } from './floors.ts'
import { importsOf } from './imports-of.ts'

/**
 * The import rules of DESIGN ("Layout"): `shared` imports nothing of the others and nothing of node; `cli` and
 * `device-manager` import neither the control plane nor each other; knex stays where rows are; rules and machines touch
 * no clock, no chance and no I/O; within a part, imports go down its floors (floors.ts).
 */
const root = normalize(join(import.meta.dirname, '..'))
const parts = ['shared', 'control-plane', 'device-manager', 'cli', 'sandbox']
const problems: string[] = []
/** Who may begin a transaction by itself; migrations wait for each other by a lock. */
const transactions = new Set(['control-plane/db/transaction.ts', 'control-plane/db/migrate.ts'])

for (const part of parts) for (const file of typescriptFiles(join(root, part))) check(relative(root, file))
for (const [part, floors] of [
  ['device-manager', deviceManagerFloors],
  ['cli', cliFloors],
] as const) {
  const files = typescriptFiles(join(root, part))
  problems.push(
    ...floorProblems(new Map(files.map((file) => [relative(root, file), readFileSync(file, 'utf8')])), floors),
  )
}

function typescriptFiles(folder: string): string[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  return names.flatMap((name) => {
    const path = join(folder, name)
    if (statSync(path).isDirectory()) return name === 'node_modules' ? [] : typescriptFiles(path)
    return path.endsWith('.ts') ? [path] : []
  })
}

function check(file: string): void {
  const text = readFileSync(join(root, file), 'utf8')
  const part = file.split('/')[0] ?? ''
  const isTest = file.endsWith('.test.ts')
  for (const { specifier, typeOnly } of importsOf(text)) {
    const target = specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : null
    const targetPart = target?.split('/')[0] ?? null
    const complain = (why: string) => problems.push(`${file}: imports ${specifier}: ${why}`)
    if (target?.startsWith('..')) complain('outside the project')
    if (part === 'shared' && !isTest) {
      if (targetPart !== null && targetPart !== 'shared') complain('shared imports nothing of the other parts')
      if (target === null && specifier !== 'zod') complain('shared imports zod and itself only')
    }
    if (
      ['cli', 'device-manager'].includes(part) &&
      targetPart !== null &&
      ![part, 'shared', 'test'].includes(targetPart)
    )
      complain(`${part} imports itself and shared only`)
    if (part === 'control-plane' && ['cli', 'device-manager'].includes(targetPart ?? ''))
      complain('the control plane imports neither')
    if (specifier === 'knex' && !typeOnly && !isTest && !file.startsWith('control-plane/db/'))
      complain('knex is opened in db/ only')
    if (
      /\/(rules|machine|[a-z-]+-machine)\.ts$/.test(file) &&
      !typeOnly &&
      /^node:|^(ws|knex|pg|execa)$/.test(specifier)
    )
      complain('rules and machines do no I/O')
    if (target?.endsWith('/handlers.ts') && /\/resources\//.test(file) && !file.endsWith('/routes.ts'))
      complain('a resource uses another by its store and rules, never by its handlers')
    if ((target ?? '').endsWith('/index.ts') && !/shared\/api\/index\.ts$|migrations\/index\.ts$/.test(target ?? ''))
      complain('no barrel files')
  }
  if (/\/(rules|machine)\.ts$/.test(file) && /Date\.now\(|new Date\(\)|Math\.random\(|process\.env/.test(text))
    problems.push(`${file}: a rule or machine reads the clock, chance or the environment`)
  if (part === 'control-plane' && !isTest && /\.transaction\(/.test(text) && !transactions.has(file))
    problems.push(`${file}: a transaction begins by inTransaction or inSavepoint of db/transaction.ts`)
  const queries = /\b(db|tx|root)\('[a-z_]+'\)/
  if (
    part === 'control-plane' &&
    !isTest &&
    queries.test(text) &&
    !/(-store|\/store)\.ts$|\/db\/|\/sweeps\/|\/dispatch\//.test(file)
  )
    problems.push(`${file}: queries rows outside a store`)
}

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n${problems.length} import rule(s) broken\n`)
  process.exit(1)
}
