import { accessSync, constants, lstatSync, realpathSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { settingsFrom, type CarriedSettings, readPlainConfig, type Setting } from './carried-settings.ts'
import { readHeadFiles } from './head.ts'
import { readRegularFile } from './regular-file.ts'
import type { Repository } from './repository.ts'

/** A larger config is read by git. */
const maxConfigBytes = 1024 * 1024

/**
 * The usual repository without a process: a `.git` folder of our own in the folder or above it, of format 0, with a
 * config in plain text and a branch that has a commit. Null for anything else, also for whatever is wrong: then git is
 * asked, and says what.
 */
export function locatePlain(folder: string): { repository: Repository; settings: CarriedSettings } | null {
  try {
    const real = realpathSync.native(folder)
    const topLevel = findTop(real)
    if (topLevel === null || topLevel.includes('\n')) return null
    const gitDir = join(topLevel, '.git')
    if (!isGitFolder(gitDir)) return null
    const configs = configPaths(gitDir).map(readConfigFile)
    const head = readHeadFiles({ gitDir, commonDir: gitDir, objectFormat: 'sha1' })
    if (head?.commit == null || configs.at(-1)?.length === 0) return null
    const entries: Setting[] = []
    for (const config of configs) {
      if (config === null) return null
      entries.push(...config)
    }
    if (!entries.every(isPlain)) return null
    const below = relative(topLevel, real)
    const prefix = below === '' ? '' : `${below}/`
    const place = { topLevel, prefix, gitDir, commonDir: gitDir, objectFormat: 'sha1', isPlain: true } as const
    return { repository: { ...place, ...head }, settings: settingsFrom(entries) }
  } catch {
    return null
  }
}

/** The nearest folder with a `.git`, as git goes up. */
function findTop(real: string): string | null {
  const uid = process.geteuid?.()
  const { dev } = lstatSync(real)
  for (let dir = real; ; dir = dirname(dir)) {
    const found = lstatOrNone(join(dir, '.git'))
    const place = lstatSync(dir)
    // Another file system: git stops there, or does not, by a setting.
    if (place.dev !== dev) return null
    if (found !== null) {
      // One of someone else is trusted by settings that only git reads.
      return found.isDirectory() && found.uid === uid && place.uid === uid ? dir : null
    }
    // The folder may be a bare repository, or lie in a git folder.
    if (lstatOrNone(join(dir, 'HEAD')) !== null || dirname(dir) === dir) return null
  }
}

function isGitFolder(gitDir: string): boolean {
  const at = (name: string) => join(gitDir, name)
  if (!lstatOrNone(at('objects'))?.isDirectory() || !lstatOrNone(at('refs'))?.isDirectory()) return false
  accessSync(at('objects'), constants.X_OK)
  accessSync(at('refs'), constants.X_OK)
  return lstatOrNone(at('commondir')) === null
}

/** Returns them in the order in which git reads them; the repository's own is the last one. */
function configPaths(gitDir: string): string[] {
  const { HOME: home, XDG_CONFIG_HOME: xdg } = process.env
  const paths: string[] = []
  if (xdg) paths.push(join(xdg, 'git', 'config'))
  else if (home) paths.push(join(home, '.config', 'git', 'config'))
  if (home) paths.push(join(home, '.gitconfig'))
  return [...paths, join(gitDir, 'config')]
}

function readConfigFile(path: string): Setting[] | null {
  try {
    const bytes = readRegularFile(path, { maxBytes: maxConfigBytes, followLinks: true })
    return bytes && readPlainConfig(bytes.toString('utf8'))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ENOTDIR' ? [] : null
  }
}

function isPlain({ key, value }: Setting): boolean {
  if (key === 'core.bare') return value === 'false'
  if (key === 'core.repositoryformatversion') return value === '0'
  return key !== 'core.worktree' && !key.startsWith('extensions.')
}

/** Fails when it cannot be looked at. */
function lstatOrNone(path: string) {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null
}
