// Paths of programs that outlive the next update of what they name: for what a service manager is told to start.

/** Returns what a path leads to; null: nothing is there. */
export type RealPath = (path: string) => string | null

/** Names in a folder that has several versions of svc. */
export const installNames = {
  /** A folder for each version. */
  versions: 'versions',
  /** A link to the version that runs. */
  current: 'current',
  /** A link to the one before, to which `svc upgrade --rollback` returns. */
  previous: 'previous',
  /** Programs and natives, in a version. */
  lib: 'lib',
} as const

/** A part of a path that is a version changes with the next update: `.../Cellar/node/24.1.0/bin/node`. */
const versioned = /\/v?\d+\.\d+(\.\d+)*(_\d+)?(?=\/)/
/** Made anew for each shell, or thrown away by a cache. */
const shortLived = /\/fnm_multishells\/|\/_npx\/|\/\.npm\/_cacache\//

/** A path that will not stay. */
export const isPassingPath = (path: string): boolean => versioned.test(path) || shortLived.test(path)

/**
 * The same path by way of the link `current`, for what is started later, when another version may be current; the path itself where it does
 * not lie in the current version of a folder of versions.
 */
function throughCurrent(file: string, realPathOf: RealPath): string {
  const found = new RegExp(`^(.*)/${installNames.versions}/[^/]+/`).exec(file)
  if (found === null) return file
  const [version, prefix = ''] = found
  const through = `${prefix}/${installNames.current}/${file.slice(version.length)}`
  const real = realPathOf(file)
  return real !== null && realPathOf(through) === real ? through : file
}

/** A path to the running Node that outlives its next update, if this machine has one: `/opt/homebrew/bin/node`. `path`: that of the shell. */
export function stableNodePath(execPath: string, path: string, realPathOf: RealPath): string {
  const current = throughCurrent(execPath, realPathOf)
  if (current !== execPath) return current
  if (!versioned.test(execPath)) return execPath
  const real = realPathOf(execPath)
  const folders = path.split(':').filter((each) => each.startsWith('/'))
  const candidates = folders.map((folder) => `${folder.replace(/\/+$/, '')}/node`)
  const cellar = /^(.*)\/Cellar\/([^/]+)\//.exec(execPath)
  if (cellar) candidates.unshift(`${cellar[1]}/opt/${cellar[2]}/bin/node`)
  return candidates.find((each) => !isPassingPath(each) && real !== null && realPathOf(each) === real) ?? execPath
}

/**
 * A program by the link to the newest release of its checkout (scripts/release.ts), or to the current version of an installed copy, where it
 * lies in one: `.../RELEASE/PROGRAM/main.js`.
 */
export function stableMainPath(main: string, realPathOf: RealPath): string {
  const current = throughCurrent(main, realPathOf)
  if (current !== main) return current
  const [, releases, inRelease] = /^(.*)\/[^/]+(\/[^/]+\/[^/]+)$/.exec(main) ?? []
  const newest = `${releases}/current${inRelease}`
  return releases !== undefined && realPathOf(newest) === main ? newest : main
}
