import { globSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import type { Program } from '../shared/lib/program-file.ts'

/**
 * Bundles the programs into a folder, `dist` where none is named, each with what it needs of its libraries: a program that
 * loads a few files starts in half the time of one that loads hundreds.
 */
const programs: readonly Program[] = ['cli', 'control-plane', 'device-manager', 'device-manager/run-host']
/** Stays in `node_modules`: compiled code, and what loads its own files by their paths. */
const addonsAndWorkers = ['better-sqlite3', 'node-pty', 'pino', 'pino-pretty']
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

const root = join(import.meta.dirname, '..')

export async function build(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: root,
    platform: 'node',
    external: [...addonsAndWorkers, ...neverLoaded],
    input: Object.fromEntries(programs.map((program) => [`${program}/main`, `${program}/main.ts`])),
    onLog(level, log, write) {
      // A library's own way to make a function is not ours to change.
      if (log.code !== 'EVAL') write(level === 'warn' ? 'error' : level, log)
    },
  })
  await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    codeSplitting: { groups: [{ name: 'program-file', test: /\/shared\/lib\/program-file\.ts$/ }] },
  })
  await bundle.close()
  await checkPrograms(folder)
}

/** Each program is where the others will look for it. */
async function checkPrograms(folder: string): Promise<void> {
  const [file] = globSync('chunks/program-file-*.js', { cwd: folder })
  if (file === undefined) throw new Error(`shared/lib/program-file.ts has no chunk of its own in ${folder}`)
  const chunk = (await import(pathToFileURL(join(folder, file)).href)) as Record<string, unknown>
  const programUrl = Object.values(chunk).find((value) => typeof value === 'function') as (program: Program) => URL
  for (const program of programs) statSync(fileURLToPath(programUrl(program)))
}

if (process.argv[1] === import.meta.filename) await build(resolve(process.argv[2] ?? join(root, 'dist')))
