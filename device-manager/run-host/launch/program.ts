import { accessSync, closeSync, constants, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { HarnessLaunchError } from '../../harness/parts/adapter-errors.ts'

/**
 * The program's absolute path, looked up on the PATH the harness gets. A pty tells nothing of a program that cannot be
 * executed but a line of output, so all that can be known is looked at before. Throws HarnessLaunchError.
 */
export function findProgram(file: string, facts: { path: string; cwd: string }): string {
  checkFolder(facts.cwd)
  if (file.includes('/')) return checked(isAbsolute(file) ? file : resolve(facts.cwd, file))
  for (const folder of facts.path.split(':')) {
    const candidate = join(folder === '' ? facts.cwd : resolve(facts.cwd, folder), file)
    if (problemOf(candidate) === null) return candidate
  }
  throw new HarnessLaunchError(
    `The program ${file} was not found on the PATH of the login shell. Install it, or make the login shell put it on the PATH.`,
  )
}

function checkFolder(cwd: string): void {
  try {
    if (!statSync(cwd).isDirectory()) throw new HarnessLaunchError(`The folder ${cwd} is not a folder.`)
    accessSync(cwd, constants.X_OK)
  } catch (error) {
    if (error instanceof HarnessLaunchError) throw error
    throw new HarnessLaunchError(`The folder ${cwd} cannot be entered (${(error as NodeJS.ErrnoException).code}).`)
  }
}

function checked(path: string): string {
  const problem = problemOf(path)
  if (problem !== null) throw new HarnessLaunchError(`The program ${path} ${problem}.`)
  return path
}

function problemOf(path: string): string | null {
  try {
    if (!statSync(path).isFile()) return 'is not a file'
    accessSync(path, constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'EACCES' ? 'is not executable' : `does not exist or cannot be reached (${code})`
  }
  const own = elfMachine(process.execPath)
  const its = elfMachine(path)
  const isForeign = own !== null && its !== null && own !== its && !hasEmulators()
  return isForeign ? 'is built for another kind of processor' : null
}

/** The processor an ELF program is for; null for anything else. */
function elfMachine(path: string): number | null {
  try {
    const fd = openSync(path, 'r')
    try {
      const head = Buffer.alloc(20)
      const isElf = readSync(fd, head, 0, 20, 0) === 20 && head.readUInt32BE(0) === 0x7f454c46
      return isElf ? head.readUInt16LE(18) : null
    } finally {
      closeSync(fd)
    }
  } catch {
    // An executable need not be readable.
    return null
  }
}

/** Linux can be told to run foreign programs through an emulator. */
function hasEmulators(): boolean {
  try {
    return readdirSync('/proc/sys/fs/binfmt_misc').some((name) => name.startsWith('qemu'))
  } catch {
    return false
  }
}
