import { execFileSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  cpSync,
  existsSync,
  fsyncSync,
  globSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { build, unbundled } from './build.ts'

/**
 * Releases of a checkout: `.cache/releases/ID` holds the bundled programs and the packages that are not bundled. ID is
 * a hash of everything they are made of. A release never changes, so a `git pull`, an `npm ci` or an edit takes nothing
 * away from running programs; programs started afterwards use a new release beside it. `current` leads to the newest.
 */
const root = join(import.meta.dirname, '..')
const releases = join(root, '.cache/releases')
/**
 * Created before the sources are read: a source that changes later is not in the release. scripts/launch compares by
 * it.
 */
const checkedName = 'checked'
/** Written last, so a release with this file is complete, whatever happened to the machine meanwhile. */
const wholeName = 'whole'
/** Touched by long-running programs of the release. */
const usedName = 'used'
const oldMs = 3 * 86_400_000
const maxAttempts = 3

/** Returns the folder of the release of the current sources, and makes it if needed. */
export async function currentRelease(): Promise<string> {
  demandWritable()
  const making = join(releases, `making-${randomUUID()}`)
  try {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const checked = `${making}.${checkedName}`
      writeFileSync(checked, '')
      const id = contentHash()
      const folder = join(releases, id)
      if (!existsSync(join(folder, wholeName))) {
        await build(making)
        copyPackages(making)
        // Sources that changed meanwhile may be in it partly.
        if (contentHash() !== id) continue
        writeFileSync(join(making, usedName), '')
        flush(making)
        writeFileSync(join(making, wholeName), '', { flush: true })
        if (!existsSync(join(folder, wholeName))) remove(folder)
        moveTo(making, folder)
      }
      renameSync(checked, join(folder, checkedName))
      makeCurrent(id)
      removeOld(id)
      return folder
    }
    throw new Error(`The sources in ${root} change all the time. Start again when they do not.`)
  } finally {
    for (const path of [making, `${making}.${checkedName}`]) rmSync(path, { recursive: true, force: true })
  }
}

function demandWritable(): void {
  try {
    mkdirSync(releases, { recursive: true })
    accessSync(releases, constants.W_OK)
  } catch (error) {
    const why = (error as Error).message
    throw new Error(`${releases} cannot be written to: ${why}. Clone the checkout into a folder of your own.`, {
      cause: error,
    })
  }
}

function contentHash(): string {
  const sources = globSync('{shared,control-plane,device-manager,cli}/**/*.{ts,json}', { cwd: root })
  const others = [
    'scripts/build.ts',
    'scripts/release.ts',
    'package.json',
    'package-lock.json',
    'node_modules/.installed',
  ]
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}\0`)
  for (const file of [...sources.sort(), ...others]) {
    if (!file.endsWith('.test.ts'))
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(root, file)))
        .update('\0')
  }
  return hash.digest('hex').slice(0, 32)
}

/** Copies the packages that the bundles load by name, with all their dependencies, to where the bundles find them. */
export function copyPackages(release: string): void {
  const found = new Set<string>()
  const left = unbundled.map((name) => ({ name, from: root }))
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const folder = packageFolder(next.name, next.from)
    if (folder === null || found.has(folder)) continue
    found.add(folder)
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))
      left.push({ name, from: folder })
  }
  for (const folder of found) {
    // A package inside another one is copied with it.
    if (found.has(folder.replace(/\/node_modules\/(@[^/]+\/)?[^/]+$/, ''))) continue
    cpSync(folder, join(release, relative(root, folder)), {
      recursive: true,
      dereference: true,
      mode: constants.COPYFILE_FICLONE,
      filter: (source) => !needless.test(relative(root, source)),
    })
  }
}

interface Manifest {
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** C sources, and programs for other machines. */
const needless = new RegExp(
  `better-sqlite3/(deps|src|prebuilds/(?!linuxmusl-${process.arch}|${process.platform}-${process.arch}).+)$`,
)

/** Null for a package of another platform, which is not installed. */
function packageFolder(name: string, from: string): string | null {
  for (let folder = from; folder.startsWith(root); folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name)
    if (existsSync(join(candidate, 'package.json'))) return candidate
  }
  return null
}

function moveTo(making: string, folder: string): void {
  try {
    renameSync(making, folder)
  } catch (error) {
    // Somebody else was faster.
    if (!existsSync(folder)) throw error
  }
}

function makeCurrent(id: string): void {
  const link = join(releases, 'current')
  if (linkOf(link) === id) return
  const making = join(releases, `making-${randomUUID()}`)
  symlinkSync(id, making)
  renameSync(making, link)
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}

/**
 * Removes releases that nobody has used for days and that no process was started from. A run or a container does not
 * see all processes: a run removes nothing, and `used` protects the releases of containers.
 */
function removeOld(current: string): void {
  if (process.env['SVC_RUN_ID'] !== undefined) return
  const old = readdirSync(releases).filter(
    (name) => name !== current && name !== 'current' && isOld(join(releases, name)),
  )
  const running = old.length === 0 ? null : commandLines()
  if (running !== null)
    for (const name of old) if (!running.includes(join(releases, name))) remove(join(releases, name))
}

const isOld = (folder: string): boolean =>
  [folder, join(folder, checkedName), join(folder, usedName)].every((path) => {
    const stat = statSync(path, { throwIfNoEntry: false })
    return stat === undefined || Date.now() - stat.mtimeMs > oldMs
  })

/** Moved away first, so that a release is complete or not there. */
function remove(folder: string): void {
  const going = join(releases, `making-${randomUUID()}`)
  try {
    renameSync(folder, going)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  rmSync(going, { recursive: true, force: true })
}

function flush(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = openSync(join(entry.parentPath, entry.name), 'r')
    fsyncSync(file)
    closeSync(file)
  }
}

/** The command lines of all processes on this machine, or null when they cannot be listed. */
function commandLines(): string | null {
  try {
    return execFileSync('ps', ['-axww', '-o', 'args='], { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
  } catch {
    return null
  }
}

if (process.argv[1] === import.meta.filename) {
  try {
    process.stdout.write(`${await currentRelease()}\n`)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}
