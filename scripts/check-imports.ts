import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, normalize, relative } from 'node:path'
import { checkFloors, checkUpwardTypes, importsOf, type Import } from './check-floors.ts'
import { doubledNameProblems } from './check-doubled-names.ts'
import { insideProblems } from './check-insides.ts'
import { missingReasons, resourceProblems } from './check-resources.ts'
import { knownAhead } from './known-ahead.ts'
import { runWriteProblems } from './check-run-writers.ts'
import { harnessNameProblems } from './check-harness-names.ts'
import { harnessNames } from '../shared/runs/harnesses.ts'
import { controlPlaneFloors } from './floors-control-plane.ts'
import { cliFloors, deviceManagerFloors, sharedFloors } from './floors.ts'

/**
 * The import rules: `shared` imports only zod and itself, and `shared/permissions` what Node has for texts that are paths; `cli` and `device-manager` import neither the control plane
 * nor each other; the rooms of each part have floors (`floors.ts`, `floors-control-plane.ts`); only `db/` opens knex;
 * rules and machines use no clock, no chance and no I/O; the inside of a library has one home; rows of runs are
 * written by one file; a part exports a name once; a resource knows those before it, and others for a reason that is written down.
 */
const root = normalize(join(import.meta.dirname, '..'))
const parts = ['shared', 'control-plane', 'device-manager', 'cli', 'sandbox']
const problems: string[] = []
/** The files that may begin a transaction themselves; migrations wait for each other by a lock, and a snapshot only reads. */
const transactions = new Set(['transaction', 'migrate', 'snapshot'].map((name) => `control-plane/db/${name}.ts`))

/** Modules of Node that take texts for paths and addresses, and look at nothing. */
const ofTexts = new Set(['node:path', 'node:url'])

/** The imports of all files but tests. */
const graph = new Map<string, Import[]>()
/** The texts of all files. */
const texts = new Map<string, string>()

for (const part of parts) for (const file of typescriptFiles(join(root, part))) check(relative(root, file))
problems.push(...doubledNameProblems(texts))
problems.push(...checkFloors('control-plane', controlPlaneFloors, graph))
problems.push(...resourceProblems(graph, controlPlaneFloors, knownAhead))
const page = 'docs/architecture.md'
for (const line of missingReasons(readFileSync(join(root, page), 'utf8'), knownAhead))
  problems.push(`${page}: lacks the line ${line}`)
problems.push(...checkFloors('device-manager', deviceManagerFloors, graph))
problems.push(...checkFloors('cli', cliFloors, graph), ...checkUpwardTypes('cli', cliFloors, graph))
problems.push(...checkFloors('shared', sharedFloors, graph))

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
  texts.set(file, text)
  const part = file.split('/')[0] ?? ''
  const isTest = file.endsWith('.test.ts')
  problems.push(...harnessNameProblems(file, text, harnessNames), ...insideProblems(file, text))
  problems.push(...runWriteProblems(file, text))
  const imports = importsOf(file, text)
  if (!isTest)
    graph.set(
      file,
      imports.filter(({ target }) => target !== ''),
    )
  for (const { specifier, target: path, typeOnly } of imports) {
    const target = path === '' ? null : path
    const targetPart = target?.split('/')[0] ?? null
    const complain = (why: string) => problems.push(`${file}: imports ${specifier}: ${why}`)
    if (target?.startsWith('..')) complain('outside the project')
    if (part === 'shared' && !isTest) {
      if (targetPart !== null && targetPart !== 'shared') complain('shared imports nothing of the other parts')
      const isOfTexts = file.startsWith('shared/permissions/') && ofTexts.has(specifier)
      if (target === null && specifier !== 'zod' && !isOfTexts) complain('shared imports zod and itself only')
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
    !/(-store|\/store)\.ts$|\/db\/|\/sweeps\//.test(file)
  )
    problems.push(`${file}: queries rows outside a store`)
}

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n${problems.length} import rule(s) broken\n`)
  process.exit(1)
}
