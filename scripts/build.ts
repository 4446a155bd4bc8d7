import { globSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown, type RolldownLog } from 'rolldown'
import type { Program } from '../shared/lib/program-file.ts'

/**
 * Bundles the programs into a folder, `dist` where none is named, each with what it needs of its libraries: a program that
 * loads a few files starts in half the time of one that loads hundreds. What is written are CommonJS modules, which Node
 * loads faster; also, an `import` of `node:http` loads undici, which nobody here uses.
 */
const programs: readonly Program[] = [
  'cli',
  'control-plane',
  'control-plane/costly',
  'device-manager',
  'device-manager/run-host',
]
/** Stays in `node_modules`: compiled code, and what loads its own files by their paths. */
export const unbundled = ['better-sqlite3', 'node-pty', 'pino', 'pino-pretty']
/** Loaded by a library for what we do not use: other databases, telemetry. */
const neverLoaded = [
  'sqlite3',
  'mysql',
  'mysql2',
  'mariadb/callback',
  'oracledb',
  'tedious',
  'pg-native',
  'pg-query-stream',
  '@opentelemetry/core',
]

/** What every call of `svc` loads: one file instead of a dozen. */
const svcStart =
  /\/cli\/(arguments\/(command|command-table|commands|parse|values)|context|errors\/(cli-error|exit-codes)|flows|http\/client|machine\/(environment|files|input|paths)|output\/output|replies\/fields|sign-in\/(caller|login-file|server-url)|start)\.(ts|json)$/

const root = join(import.meta.dirname, '..')

export async function build(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: root,
    platform: 'node',
    external: [...unbundled, ...neverLoaded],
    input: Object.fromEntries(programs.map((program) => [`${program}/main`, `${program}/main.ts`])),
    onLog(level, log, write) {
      if (!isHarmless(log)) write(level === 'warn' ? 'error' : level, log)
    },
  })
  await bundle.write({
    dir: folder,
    format: 'cjs',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    codeSplitting: {
      groups: [
        { name: 'program-file', test: /\/shared\/lib\/program-file\.ts$/, priority: 2 },
        // Else they come with svc's, which the daemon would load too.
        { name: 'everywhere', test: /\/shared\/lib\/(base62|world|backoff|places|lines)\.ts$/, priority: 2 },
        { name: 'svc', test: svcStart, priority: 1 },
      ],
    },
  })
  await bundle.close()
  writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }\n')
  checkPrograms(folder)
}

function isHarmless({ code, id = '' }: RolldownLog): boolean {
  // A library's own way to make a function, and yargs' to find settings in other packages, are not ours to change.
  if (code === 'EVAL') return true
  if (code === 'EMPTY_IMPORT_META') return id.includes('/node_modules/yargs/')
  // What svc loads only when it calls the server lies in the file that it loads anyway.
  return code === 'INEFFECTIVE_DYNAMIC_IMPORT'
}

/** Each program is where the others will look for it. */
function checkPrograms(folder: string): void {
  const [file] = globSync('chunks/program-file-*.js', { cwd: folder })
  if (file === undefined) throw new Error(`shared/lib/program-file.ts has no chunk of its own in ${folder}`)
  const chunk = createRequire(import.meta.url)(join(folder, file)) as Record<string, unknown>
  const programUrl = Object.values(chunk).find((value) => typeof value === 'function') as (program: Program) => URL
  for (const program of programs) statSync(fileURLToPath(programUrl(program)))
}

if (process.argv[1] === import.meta.filename) await build(resolve(process.argv[2] ?? join(root, 'dist')))
