import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { systemPath } from '../wall/namespaces.ts'

export interface GitProgram {
  file: string
  /** A program of this user, so also a run, could put another one in its place. */
  isReplaceable: boolean
}

/** On macOS `/usr/bin/git` only starts one of these, and asks to install them where there is none. */
const appleFolders = [
  '/Library/Developer/CommandLineTools/usr/bin',
  '/Applications/Xcode.app/Contents/Developer/usr/bin',
]

/**
 * The git that svc runs, outside of any wall. That of the system, for a run may put a program of that name in a folder of
 * its user's that comes first on the PATH. Where the system has none: the first of the PATH that this user cannot replace, or else
 * the first. Null: there is none.
 */
export function findGit(path: string): GitProgram | null {
  const isMac = process.platform === 'darwin'
  const system = isMac ? appleFolders : systemPath.split(':')
  const ofSystem = programsIn(system)[0]
  if (ofSystem !== undefined) return { file: ofSystem, isReplaceable: false }
  const found = programsIn(path.split(delimiter).filter(isAbsolute))
  const others = isMac ? found.filter((file) => file !== '/usr/bin/git') : found
  const firm = others.find((file) => !isReplaceable(file))
  if (firm !== undefined) return { file: firm, isReplaceable: false }
  const first = others[0] ?? found[0]
  return first === undefined ? null : { file: first, isReplaceable: first !== '/usr/bin/git' }
}

function programsIn(folders: readonly string[]): string[] {
  return folders.map((folder) => join(folder, 'git')).filter(isProgram)
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

/** Root may replace everything, which is said of it anyway (isolation/trial.ts). */
function isReplaceable(file: string): boolean {
  const real = realpathSync(file)
  return [file, dirname(file), real, dirname(real)].some(isChangeable)
}

function isChangeable(path: string): boolean {
  const uid = process.getuid?.()
  if (uid === 0) return false
  try {
    if (statSync(path).uid === uid) return true
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
