import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { linkPackages } from '../process/checkout/checkout.ts'

// The programs of an earlier commit, made once and kept in `.cache/skew/COMMIT`. Its own scripts/release.ts makes them from
// its sources and the packages of its lockfile. They are made in a folder beside and moved to their name when they are
// whole, so any number of processes may ask at once. `.cache/skew` may be removed whenever no test runs.

/** The last release, 0.1.0, by its commit: a clone need not have the tag. CONTRIBUTING.md says when it is raised. */
export const lastRelease = '80bda899df4247614deb1f17ab575ab0d174e07a'

const root = resolve(import.meta.dirname, '../..')
const sources = ['cli', 'control-plane', 'device-manager', 'shared', 'scripts', 'package.json', 'package-lock.json']
const execute = promisify(execFile)
const run = async (folder: string, program: string, ...args: string[]): Promise<string> =>
  (await execute(program, args, { cwd: folder, maxBuffer: 2 ** 26 })).stdout

/** The history of this checkout does not go back to the commit: a shallow clone, or files without their history. */
export function isCutOff(commit: string): boolean {
  return spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).status !== 0
}

/** The folder with the bundled programs of that commit. */
export async function programsOf(commit: string): Promise<string> {
  // The packages with compiled code are of one platform.
  const folder = join(root, '.cache/skew', commit, `${process.platform}-${process.arch}`)
  if (existsSync(folder)) return folder
  const making = join(root, '.cache/skew', `making-${randomUUID()}`)
  try {
    mkdirSync(making, { recursive: true })
    await extract(commit, making)
    await installPackages(making)
    const release = await run(making, process.execPath, '--disable-warning=ExperimentalWarning', 'scripts/release.ts')
    mkdirSync(join(folder, '..'), { recursive: true })
    moveTo(release.trim(), folder)
    return folder
  } finally {
    rmSync(making, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function extract(commit: string, folder: string): Promise<void> {
  try {
    await run(root, 'git', 'cat-file', '-e', `${commit}^{commit}`)
  } catch (error) {
    throw new Error(
      `This clone does not have the commit ${commit}, whose programs are tested against those of today. ` +
        'Fetch it: `git fetch --unshallow` in a shallow clone, else `git fetch origin ' +
        `${commit}\`.`,
      { cause: error },
    )
  }
  const archive = join(folder, 'sources.tar')
  await run(root, 'git', 'archive', '--format=tar', `--output=${archive}`, commit, '--', ...sources)
  await run(folder, 'tar', '-xf', archive)
}

async function installPackages(folder: string): Promise<void> {
  if (areInstalledHere(folder)) linkPackages(folder)
  else await run(folder, 'npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error')
  // scripts/release.ts reads this file, which scripts/env writes in a checkout.
  writeFileSync(join(folder, 'node_modules/.installed'), '')
}

interface Lockfile {
  packages: Record<string, { integrity?: string }>
}

/** True when this checkout has every package that it needs, at the same path and of the same content. */
function areInstalledHere(folder: string): boolean {
  const packagesIn = (where: string) =>
    (JSON.parse(readFileSync(join(where, 'package-lock.json'), 'utf8')) as Lockfile).packages
  const here = packagesIn(root)
  return Object.entries(packagesIn(folder)).every(
    // The one without a path is the project itself.
    ([path, { integrity }]) => path === '' || (here[path] !== undefined && here[path].integrity === integrity),
  )
}

function moveTo(release: string, folder: string): void {
  try {
    renameSync(release, folder)
  } catch (error) {
    // Another process was faster; what it made is the same.
    if (!existsSync(folder)) throw error
  }
}
