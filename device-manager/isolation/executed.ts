import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { copyFile } from '../../shared/releases/copy.ts'
import { isReplaceable, realPath } from '../wall/changeable.ts'
import { isWithin } from '../wall/mounts.ts'
import { isOfSystem } from '../wall/read-only.ts'
import type { ExecutedPaths } from '../wall/spec.ts'

/** How svc is installed on this machine, and what starts it. */
export interface Installation {
  /** The Node that runs this. */
  node: string
  /** The program of the daemon: `device-manager/main.js` in a release, in a package, or in a checkout's sources. */
  main: string
  homeDir: string
  platform: string
  env: Readonly<Record<string, string | undefined>>
  /** Files whose code the daemon has loaded (`loadedFiles`). */
  loaded: readonly string[]
  /** What the background service starts, and the file that says so; null: there is none. */
  service: { file: string; node: string; main: string } | null
}

/** What is executed outside of a wall, and why some of it cannot be kept from runs, in sentences for the owner of the device. */
export interface Executed {
  paths: ExecutedPaths
  gaps: string[]
}

/**
 * Returns every file and folder that a process of svc outside of a wall executes, loads or reads settings from, but for what is hidden
 * anyway and what lies in the system's own folders:
 *
 *     the programs     a release of a checkout, all installed versions, or the package that npm installed, with the packages that they
 *                      load
 *     the checkout     its scripts, sources and packages, of which the next release is made
 *     compile caches   code that Node loads without looking at the source
 *     Node             that of the daemon, which starts run hosts and the `svc` of runs; that of the background service
 *     units            what systemd or launchd starts, and the environment that systemd gives it
 *     settings         of OpenSSL, and certificates, where variables name them
 *
 * The login shell's profiles, the harness programs and what else lies on a PATH are not in the list: the daemon runs these behind walls of
 * their own. It starts git from the system's folders, under settings that a configuration of the person's cannot undo
 * (change-set/git.ts), and its programs search no folder for a package that may be missing (scripts/build.ts).
 */
export function executedOutside(installation: Installation): Executed {
  const { node, service } = installation
  const programs = path.dirname(path.dirname(installation.main))
  const { always, checkout } = programsOf(programs)
  const settings = settingsOf(installation.env)
  const units = service === null ? [] : unitFolders(installation)
  for (const folder of units) makeFolder(folder)
  const paths = {
    always: [...always, node, ...(service === null ? [] : [service.node]), ...units, ...settings],
    checkout,
  }
  const started = service === null ? [] : [service.node, service.main, service.file]
  return { paths, gaps: gapsOf({ ...installation, paths, programs, named: [...started, ...settings] }) }
}

function programsOf(programs: string): ExecutedPaths {
  const checkout = /^(.+)\/\.cache\/releases\/[^/]+$/.exec(programs)?.[1]
  if (checkout !== undefined && existsSync(path.join(checkout, 'scripts/launch'))) {
    const cache = path.join(checkout, '.cache/compile')
    makeFolder(cache)
    const others = ['.cache/releases', 'node_modules', 'scripts/node24'].map((name) => path.join(checkout, name))
    return { always: [cache, ...others], checkout }
  }
  if (existsSync(path.join(programs, 'device-manager/main.ts')))
    return { always: sourceFolders.map((name) => path.join(programs, name)), checkout: programs }
  const prefix = /^(.+)\/versions\/[^/]+\/lib$/.exec(programs)?.[1]
  // With the link to the current version, by which the next program is started.
  if (prefix !== undefined && existsSync(path.join(programs, copyFile))) return { always: [prefix], checkout: null }
  const around = path.dirname(programs)
  const folder = existsSync(path.join(around, 'package.json')) ? around : programs
  return { always: [folder, ...packageFolders(folder)], checkout: null }
}

/** Of a checkout whose daemon runs from the sources. */
const sourceFolders = ['cli', 'device-manager', 'shared', 'control-plane', 'node_modules', 'package.json', '.cache']

/** The folders of packages beside the package of svc, or above it, that it loads others from. */
function packageFolders(folder: string): string[] {
  const found = dependenciesOf(folder).flatMap((name) => {
    for (let at = folder; at !== path.dirname(at); at = path.dirname(at)) {
      const packages = path.basename(at) === 'node_modules' ? at : path.join(at, 'node_modules')
      if (existsSync(path.join(packages, name))) return [packages]
    }
    return []
  })
  return [...new Set(found)].filter((packages) => !isWithin(packages, folder))
}

function dependenciesOf(folder: string): string[] {
  try {
    const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
    return Object.keys({ ...(manifest['dependencies'] as object), ...(manifest['optionalDependencies'] as object) })
  } catch {
    return []
  }
}

/** A unit beside that of svc, or a file in a folder named after it, changes what is started: so the folders are kept, not one file. */
function unitFolders({ homeDir, platform }: Installation): string[] {
  if (platform === 'darwin') return [path.join(homeDir, 'Library/LaunchAgents')]
  return ['.config/systemd', '.config/environment.d', '.local/share/systemd'].map((name) => path.join(homeDir, name))
}

const settingVariables = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'OPENSSL_CONF']

const settingsOf = (env: Installation['env']): string[] =>
  settingVariables.flatMap((name) => {
    const file = env[name]
    return file !== undefined && path.isAbsolute(file) && existsSync(file) ? [file] : []
  })

/** One that is missing could be made by a run. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    // Then a run cannot make it either.
  }
}

interface Looked extends Pick<Installation, 'node' | 'env' | 'loaded'> {
  paths: ExecutedPaths
  programs: string
  /** Paths by which something outside names what it starts or reads. */
  named: readonly string[]
}

function gapsOf({ paths, programs, node, named, env, loaded }: Looked): string[] {
  const kept = [...paths.always, ...(paths.checkout === null ? [] : [paths.checkout])].flatMap(
    (file) => realPath(file) ?? [],
  )
  const isKept = (file: string) => kept.some((folder) => isWithin(file, folder))
  const isOpen = (file: string) => !isOfSystem(file) && !isKept(file) && isReplaceable(file)
  const gaps: string[] = []
  const link = named.flatMap(linksOf).find(isOpen)
  if (link !== undefined)
    gaps.push(`A run may lead the link ${link}, by which svc is started, elsewhere; name what it leads to instead.`)
  const twin = [node, ...filesIn(programs)].find((file) => isReplaceable(file) && hasOtherNames(file))
  if (twin !== undefined)
    gaps.push(`${twin}, which svc executes outside of a run, has other names, by which a run may write to it.`)
  const library = loaded.find(isOpen)
  if (library !== undefined)
    gaps.push(`A run may write to ${library}, which Node loads; use a Node that is one file, as those of nodejs.org.`)
  if (
    /(?:^|\s)(?:-r|--require|--import|--(?:experimental-)?loader|--env-file|--openssl-config)\b/.test(
      env['NODE_OPTIONS'] ?? '',
    )
  )
    gaps.push('NODE_OPTIONS names files that Node loads; start the device manager without it.')
  return gaps
}

/** The links on the way to the file, each by the real path of its folder. */
function linksOf(file: string): string[] {
  const links: string[] = []
  let at = '/'
  for (const name of file.split('/').filter(Boolean)) {
    const next = path.join(at, name)
    if (lstatSync(next, { throwIfNoEntry: false })?.isSymbolicLink() === true) links.push(next)
    at = realPath(next) ?? next
  }
  return links
}

function filesIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name))
  } catch {
    return []
  }
}

/** A package manager that keeps one copy for all gives the same file many names. */
const hasOtherNames = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.nlink ?? 1) > 1

/** The files whose code this process has loaded; none where the system does not tell. */
export function loadedFiles(): string[] {
  try {
    const lines = readFileSync('/proc/self/maps', 'utf8').split('\n')
    const files = lines.flatMap((line) => /^\S+ ..x\S* \S+ \S+ \S+ +(\/.*)$/.exec(line)?.[1] ?? [])
    return [...new Set(files)].filter((file) => existsSync(file))
  } catch {
    return []
  }
}
