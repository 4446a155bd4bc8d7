import { accessSync, closeSync, constants, openSync, readdirSync, readSync, statSync } from 'node:fs'
import path from 'node:path'
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'

const spawnErrorCodes = [
  'program_not_found',
  'program_not_executable',
  'wrong_architecture',
  'interpreter_not_found',
  'folder_not_found',
  'arguments_too_long',
  'out_of_resources',
  'spawn_failed',
] as const
type SpawnErrorCode = (typeof spawnErrorCodes)[number]

/** Why a program could not be started; `message` is a sentence for the person who owns the machine. */
export class SpawnError extends Error {
  readonly code: SpawnErrorCode
  readonly file: string

  constructor(code: SpawnErrorCode, file: string, message: string) {
    super(message)
    this.name = 'SpawnError'
    this.code = code
    this.file = file
  }
}

interface ProgramQuery {
  /** A path, or a name that is looked up in env's PATH. */
  file: string
  cwd: string
  env: Readonly<Record<string, string | undefined>>
}

/**
 * Returns the absolute path of a program that the system would start, or throws a SpawnError. It is looked at before the
 * launch since neither a pty nor execvp tells: the C library hands what the kernel refuses, a program for another processor as
 * well, to /bin/sh as a script, and a pty's child reports a missing program by an exit status like any other.
 */
export function findProgram(query: ProgramQuery): string {
  const { file, cwd } = query
  checkFolder(cwd, file)
  let refused: SpawnError | null = null
  for (const candidate of candidatesOf(query)) {
    const problem = checkProgram(candidate, file)
    if (problem === null) return candidate
    // A folder of the PATH that this user may not look into does not say that the program is there.
    const isUnseen = !file.includes('/') && !mayLookInto(path.dirname(candidate))
    if (problem.code !== 'program_not_found' && !isUnseen) refused ??= problem
  }
  throw refused ?? notFound(file)
}

function mayLookInto(folder: string): boolean {
  try {
    accessSync(folder, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function checkFolder(cwd: string, file: string): void {
  try {
    if (!statSync(cwd).isDirectory()) throw new SpawnError('folder_not_found', file, `${cwd} is not a folder.`)
    accessSync(cwd, constants.X_OK)
  } catch (error) {
    if (error instanceof SpawnError) throw error
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'does not exist' : `cannot be entered (${code})`
    throw new SpawnError('folder_not_found', file, `The folder ${cwd} ${why}.`)
  }
}

function candidatesOf({ file, cwd, env }: ProgramQuery): string[] {
  if (file.includes('/')) return [path.resolve(cwd, file)]
  if (file === '') return []
  const folders = (env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin').split(':')
  return folders.map((folder) => path.resolve(cwd, folder, file))
}

function checkProgram(candidate: string, file: string): SpawnError | null {
  try {
    if (!statSync(candidate).isFile())
      return new SpawnError('program_not_executable', file, `${candidate} is not a program file.`)
    accessSync(candidate, constants.X_OK)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR') return notFound(file)
    return new SpawnError('program_not_executable', file, `${candidate} may not be executed by this user.`)
  }
  const head = firstBytes(candidate)
  if (head === null) return null
  if (head.subarray(0, 2).toString('latin1') === '#!') return checkInterpreter(head, { candidate, file })
  if (!isForeignBinary(head, process.platform, process.arch) || hasEmulators()) return null
  return new SpawnError(
    'wrong_architecture',
    file,
    `${candidate} was built for another system or processor than this ${process.platform}-${process.arch}.`,
  )
}

/** Null for a file that may be executed but not read: it says nothing, and the launch itself will tell. */
function firstBytes(candidate: string): Buffer | null {
  try {
    // Not held up by a pipe that takes its place at this moment.
    const fd = openSync(candidate, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const buffer = Buffer.alloc(256)
      return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, 0))
    } finally {
      closeSync(fd)
    }
  } catch {
    return null
  }
}

function checkInterpreter(head: Buffer, where: { candidate: string; file: string }): SpawnError | null {
  const interpreter = /^#![ \t]*(\/[^\s\0]+)/.exec(head.toString('utf8'))?.[1]
  if (interpreter === undefined) return null
  try {
    accessSync(interpreter, constants.X_OK)
    return null
  } catch {
    const message = `${where.candidate} needs ${interpreter}, which is not there or may not be executed.`
    return new SpawnError('interpreter_not_found', where.file, message)
  }
}

/** Linux can be told to run programs for other processors through an emulator. */
function hasEmulators(): boolean {
  try {
    return readdirSync('/proc/sys/fs/binfmt_misc').some((name) => name.startsWith('qemu'))
  } catch {
    return false
  }
}

const elfMachines: Partial<Record<NodeJS.Architecture, readonly number[]>> = {
  x64: [62, 3],
  ia32: [3],
  arm64: [183, 40],
  arm: [40],
}

/** Only what is certain: a binary format of another system, or an ELF file for another processor. Exported for its test. */
export function isForeignBinary(head: Buffer, platform: NodeJS.Platform, arch: NodeJS.Architecture): boolean {
  if (head.length < 20) return false
  const magic = head.readUInt32BE(0)
  const isElf = magic === 0x7f454c46
  const isMachO = [0xfeedface, 0xfeedfacf, 0xcefaedfe, 0xcffaedfe, 0xcafebabe].includes(magic)
  if (head.subarray(0, 2).toString('latin1') === 'MZ') return !isRegisteredFormat(platform)
  if (platform === 'darwin') return isElf
  if (isMachO) return true
  if (!isElf) return false
  const machine = head[5] === 2 ? head.readUInt16BE(18) : head.readUInt16LE(18)
  const known = elfMachines[arch]
  return known !== undefined && !known.includes(machine)
}

/** Linux may run Windows programs through binfmt_misc (WSL, wine), so they are not refused there. */
function isRegisteredFormat(platform: NodeJS.Platform): boolean {
  return platform === 'linux'
}

function notFound(file: string): SpawnError {
  return new SpawnError('program_not_found', file, `There is no program ${file} on this machine.`)
}

/** Makes a SpawnError of what the system said when a program was started. */
export function explainSpawnError(error: unknown, file: string): SpawnError {
  if (error instanceof SpawnError) return error
  const code = (error as NodeJS.ErrnoException | null)?.code
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return notFound(file)
    case 'EACCES':
    case 'EPERM':
    case 'EISDIR':
    case 'ETXTBSY':
      return new SpawnError('program_not_executable', file, `${file} could not be executed (${code}).`)
    case 'ENOEXEC':
      return new SpawnError('wrong_architecture', file, `${file} is no program that this machine can execute.`)
    case 'E2BIG':
      return new SpawnError(
        'arguments_too_long',
        file,
        `The arguments and environment of ${file} are too long for this system.`,
      )
    case 'EAGAIN':
    case 'EMFILE':
    case 'ENFILE':
    case 'ENOMEM':
      return new SpawnError('out_of_resources', file, `This machine has no room to start ${file} (${code}).`)
    default:
      return new SpawnError('spawn_failed', file, `${file} could not be started (${code ?? String(error)}).`)
  }
}

interface PipedLaunch {
  cwd: string
  /** The whole environment; nothing is inherited. */
  env: Readonly<Record<string, string>>
  /** Leads a session of its own. */
  detached?: boolean
  argv0?: string
}

type Piped =
  | { child: ChildProcessWithoutNullStreams; pid: number }
  /** Nothing was started; why, is known a moment later. */
  | { failed: Promise<Error> }

/**
 * Starts a program with pipes for its input, output and errors. Never throws. All programs of the device manager that have
 * pipes are started here: when the system has no file left, Node returns a child without any pipe, whose `stdout` is
 * undefined whatever its type says, and tells why in an `error` event, which ends a process that does not listen.
 * Writing to a program that has closed its input is no error.
 */
export function spawnPiped(file: string, args: readonly string[], launch: PipedLaunch): Piped {
  let child: ChildProcessWithoutNullStreams
  try {
    child = spawn(file, [...args], { ...launch, env: { ...launch.env }, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    // A path that cannot be an argument, or no memory for a process.
    return { failed: Promise.resolve(error instanceof Error ? error : new Error(String(error))) }
  }
  const failed = new Promise<Error>((resolve) => child.once('error', resolve))
  // One after the start says only that a signal could not be sent.
  child.on('error', () => undefined)
  for (const pipe of [child.stdin, child.stdout, child.stderr] as (typeof child.stdin | undefined)[])
    pipe?.on('error', () => undefined)
  return child.pid === undefined ? { failed } : { child, pid: child.pid }
}
