import { copyFileSync, globSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown, type RolldownLog, type RolldownOutput } from 'rolldown'
import { assets, type Program } from '../shared/lib/program-file.ts'

/**
 * Bundles the programs into a folder (default: `dist`), each with its libraries: a program that loads a few files
 * starts in half the time of one that loads hundreds. The output is CommonJS, which Node loads faster; besides, an
 * `import` of `node:http` would load undici, which nothing here uses.
 */
const programs: readonly Program[] = [
  'cli',
  'control-plane',
  'control-plane/costly',
  'control-plane/workflows/engine',
  'device-manager',
  'device-manager/run-host',
  'device-manager/clone',
]
/** Packages that stay in `node_modules`: compiled code, and libraries that load their own files by path. */
export const unbundled = ['better-sqlite3', 'node-pty', 'pino', 'pino-pretty']
/**
 * Set for the libraries when they are bundled: without these ws asks for two packages that are not installed, so Node would take what
 * bears their names in any folder above, where a run may write.
 */
const settled = { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' }

/** Packages that a library would load for features we do not use: other databases, telemetry. */
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
/** Named in code that ajv would write into files. */
const onlyNamed = ['ajv/dist/runtime/validation_error', 'ajv-formats/dist/formats']

/** The files that every call of `svc` loads, as one file instead of a dozen. */
const svcStart =
  /\/cli\/(arguments\/(command|command-table|commands|named-things|parse|values)|errors\/(cli-error|exit-codes)|flows|http\/client|machine\/(environment|files|input|paths)|output\/(failure|output|terminal-text)|replies\/fields|sign-in\/(caller|login-file|server-url)|start)\.(ts|json)$|\/shared\/api\/remediations\.ts$/

const root = join(import.meta.dirname, '..')

/** `version`: that of a release which the sources do not name, such as a candidate. */
export async function build(folder: string, version?: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: root,
    platform: 'node',
    external: [...unbundled, ...neverLoaded],
    transform: { define: settled },
    input: Object.fromEntries(programs.map((program) => [`${program}/main`, `${program}/main.ts`])),
    plugins: [
      { name: 'command table', transform: (code, id) => tableByWord(code, id) },
      { name: 'version', transform: (_, id) => versionInstead(id, version) },
    ],
    onLog(level, log, write) {
      if (!isHarmless(log)) write(level === 'warn' ? 'error' : level, log)
    },
  })
  const { output } = await bundle.write({
    dir: folder,
    format: 'cjs',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    codeSplitting: {
      groups: [
        { name: 'program-file', test: /\/shared\/lib\/program-file\.ts$/, priority: 2 },
        // Without this they would be part of the svc group, which the others would load, too (checkLoaded).
        {
          name: 'everywhere',
          test: /\/shared\/lib\/(world|backoff|places|lines|v8|version|certificate-trouble)\.ts$/,
          priority: 2,
        },
        { name: 'svc', test: svcStart, priority: 1 },
      ],
    },
  })
  await bundle.close()
  writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }\n')
  mkdirSync(join(folder, 'assets'))
  for (const [asset, file] of Object.entries(assets)) copyFileSync(join(root, file), join(folder, 'assets', asset))
  checkLoaded(output)
  checkPackages(output)
  checkPrograms(folder)
}

/** Makes each group of the command table a text that is parsed when it is asked for, since a call needs the group of its own word only. */
function tableByWord(code: string, id: string): { code: string; moduleType: 'js' } | null {
  if (!id.endsWith('/command-table.json')) return null
  const groups = Object.entries(JSON.parse(code) as Record<string, unknown>).map(
    ([word, commands]) =>
      `get ${JSON.stringify(word)}() { return JSON.parse(${JSON.stringify(JSON.stringify(commands))}) }`,
  )
  return { code: `export default { ${groups.join(',\n')} }`, moduleType: 'js' }
}

function versionInstead(id: string, version: string | undefined): { code: string; moduleType: 'js' } | null {
  if (version === undefined || !id.endsWith('/shared/lib/version.ts')) return null
  return { code: `export const version = ${JSON.stringify(version)}`, moduleType: 'js' }
}

function isHarmless({ code, id = '' }: RolldownLog): boolean {
  // These two are up to the libraries: one builds a function from text, and yargs looks for settings in other packages.
  if (code === 'EVAL') return true
  if (code === 'EMPTY_IMPORT_META') return id.includes('/node_modules/yargs/')
  // svc loads its HTTP client dynamically, and the bundle puts it into the file that is loaded anyway.
  return code === 'INEFFECTIVE_DYNAMIC_IMPORT'
}

/** Checks that no other program loads the file with the start of svc: it would read a quarter of a megabyte for one function. */
function checkLoaded(output: RolldownOutput['output']): void {
  const chunks = new Map(output.flatMap((file) => (file.type === 'chunk' ? [[file.fileName, file] as const] : [])))
  const loads = (fileName: string, seen: Set<string>): Set<string> => {
    const chunk = chunks.get(fileName)
    if (chunk === undefined || seen.has(fileName)) return seen
    seen.add(fileName)
    for (const other of [...chunk.imports, ...chunk.dynamicImports]) loads(other, seen)
    return seen
  }
  const svc = [...chunks.values()].find((chunk) => chunk.name === 'svc')
  if (svc === undefined) throw new Error('svc has no chunk of its own')
  for (const program of programs)
    if (program !== 'cli' && loads(`${program}/main.js`, new Set()).has(svc.fileName))
      throw new Error(`${program} loads ${svc.fileName}: what both use belongs to the chunk \`everywhere\``)
}

/** Checks that nothing asks for a package that is not there: Node looks for it in all folders above, where a run may put one. */
function checkPackages(output: RolldownOutput['output']): void {
  const known = new Set([...builtinModules, ...unbundled, ...neverLoaded, ...onlyNamed])
  for (const file of output) {
    if (file.type !== 'chunk') continue
    for (const [, name = ''] of file.code.matchAll(/\b(?:require|import)\("((?!node:|[./])[^"]+)"\)/g))
      if (!known.has(name))
        throw new Error(`${file.fileName} would load the package ${name}, which is not in a release`)
  }
}

/** Checks that each program and asset is where the others will look for it. */
function checkPrograms(folder: string): void {
  const [file] = globSync('chunks/program-file-*.js', { cwd: folder })
  if (file === undefined) throw new Error(`shared/lib/program-file.ts has no chunk of its own in ${folder}`)
  const chunk = createRequire(import.meta.url)(join(folder, file)) as Record<string, unknown>
  const find = (name: string) =>
    Object.values(chunk).find((value) => typeof value === 'function' && value.name === name) as (of: string) => URL
  for (const program of programs) statSync(fileURLToPath(find('programUrl')(program)))
  for (const asset of Object.keys(assets)) statSync(fileURLToPath(find('assetUrl')(asset)))
}

if (process.argv[1] === import.meta.filename) await build(resolve(process.argv[2] ?? join(root, 'dist')))
