import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, readlinkSync, readSync, statSync } from 'node:fs'
import { listPids } from './proc.ts'

/** A process that waits for what is typed at a terminal. */
export interface TerminalReader {
  pid: number
  /** Its name, as the system shows it: at most 15 letters. */
  name: string
}

/**
 * Returns the processes in the terminal's foreground that are blocked until something is typed there; null: this system does not tell.
 * Linux shows the system call that a process is in, with its arguments; where the call waits for several files, they are read
 * from the memory of the process, or from the list that the kernel keeps.
 */
export function terminalReaders(terminal: string): TerminalReader[] | null {
  const calls = callsByArchitecture[process.arch]
  if (process.platform !== 'linux' || calls === undefined || attempt(() => readCall(process.pid)) === null) return null
  const device = attempt(() => statSync(terminal).rdev)
  if (device === null) return []
  return listPids().flatMap((pid) => {
    // It may end meanwhile, or be nobody's to look into.
    const found = attempt(() => foregroundOf(pid, device))
    if (found === null) return []
    // What another user runs, as sudo does, cannot be looked into. It waits where the terminal hides what is typed, line by line.
    const isWaiting = attempt(() => isReading(pid, { device, calls })) ?? (!isOurs(pid) && isHiding(terminal))
    return isWaiting ? [{ pid, name: found }] : []
  })
}

/** The name of a process whose controlling terminal this is, and which may read from it now; null: it is none. */
function foregroundOf(pid: number, device: number): string | null {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const [open, close] = [text.indexOf('('), text.lastIndexOf(')')]
  const [state, , group, , terminal, foreground] = text.slice(close + 2).split(' ')
  return state === 'S' && Number(terminal) === device && group === foreground ? text.slice(open + 1, close) : null
}

const isOurs = (pid: number): boolean => attempt(() => statSync(`/proc/${pid}`).uid) === process.getuid?.()

/** A terminal that asks for a password: no echo, and lines as they are typed. A program that draws its screen reads no lines. */
function isHiding(terminal: string): boolean {
  const { stdout } = spawnSync('stty', ['-a', '-F', terminal], { encoding: 'utf8', timeout: 1_000, maxBuffer: 16_384 })
  return /(^|\s)-echo\s/.test(stdout ?? '') && /\sicanon\s/.test(stdout)
}

type Waiting = 'read' | 'poll' | 'select' | 'epoll'

/** Numbers of the calls that wait for input. */
const callsByArchitecture: Readonly<Partial<Record<NodeJS.Architecture, Readonly<Record<number, Waiting>>>>> = {
  x64: {
    0: 'read',
    7: 'poll',
    19: 'read',
    23: 'select',
    232: 'epoll',
    270: 'select',
    271: 'poll',
    281: 'epoll',
    441: 'epoll',
  },
  arm64: { 22: 'epoll', 63: 'read', 65: 'read', 72: 'select', 73: 'poll', 441: 'epoll' },
}

/** Number and arguments of the call; null: it is in none. */
function readCall(pid: number): number[] | null {
  const words = readFileSync(`/proc/${pid}/syscall`, 'latin1').trim().split(' ')
  return /^\d+$/.test(words[0] ?? '') ? words.map(Number) : null
}

function isReading(
  pid: number,
  { device, calls }: { device: number; calls: Readonly<Record<number, Waiting>> },
): boolean {
  const call = readCall(pid)
  const waiting = call === null ? undefined : calls[call[0]!]
  if (call === null || waiting === undefined) return false
  const files = filesOf[waiting](pid, call.slice(1) as [number, number])
  return files.some((file) => attempt(() => isTerminal(pid, file, device)) ?? false)
}

/** Returns the numbers of the files from which the call waits to read. The arguments are those of the call. */
const filesOf: Record<Waiting, (pid: number, args: [number, number]) => number[]> = {
  read: (_, [file]) => [file],
  poll: (pid, [list, count]) => {
    // A file, what is asked of it and what is the answer, in 8 bytes.
    const memory = memoryOf(pid, list, Math.min(count, maxFiles) * 8)
    return Array.from({ length: memory.length / 8 }, (_, i) => i * 8)
      .filter((at) => (memory.readUInt16LE(at + 4) & pollIn) !== 0)
      .map((at) => memory.readInt32LE(at))
  },
  select: (pid, [count, list]) => {
    if (list === 0) return []
    const memory = memoryOf(pid, list, Math.ceil(Math.min(count, maxFiles) / 8))
    return Array.from({ length: Math.min(count, memory.length * 8) }, (_, file) => file).filter(
      (file) => (memory[file >> 3]! & (1 << (file & 7))) !== 0,
    )
  },
  epoll: (pid, [file]) =>
    [...readFileSync(`/proc/${pid}/fdinfo/${file}`, 'latin1').matchAll(/^tfd:\s*(\d+) events:\s*([\da-f]+)/gm)]
      .filter(([, , events]) => (Number.parseInt(events!, 16) & pollIn) !== 0)
      .map(([, watched]) => Number(watched)),
}

const pollIn = 1
const maxFiles = 1024

function memoryOf(pid: number, at: number, size: number): Buffer {
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  try {
    const buffer = Buffer.alloc(size)
    return buffer.subarray(0, readSync(memory, buffer, 0, size, at))
  } finally {
    closeSync(memory)
  }
}

/** By `/dev/tty` a process has its controlling terminal, which is this one. */
function isTerminal(pid: number, file: number, device: number): boolean {
  const link = `/proc/${pid}/fd/${file}`
  return readlinkSync(link) === '/dev/tty' || statSync(link).rdev === device
}

function attempt<Result>(look: () => Result): Result | null {
  try {
    return look()
  } catch {
    return null
  }
}
