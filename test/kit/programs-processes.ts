import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Live processes whose arguments or environment hold `text`. A process that ended but was not waited for is none. */
export function allProcesses(text: string): { pid: number; command: string }[] {
  return process.platform === 'linux' ? fromProc(text) : fromPs(text)
}

function fromProc(text: string): { pid: number; command: string }[] {
  const found: { pid: number; command: string }[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    const command = read(`/proc/${pid}/cmdline`)
    // Empty: a thread of the kernel, or a process that only waits to be collected.
    if (command === '') continue
    if (command.includes(text) || read(`/proc/${pid}/environ`).includes(text))
      found.push({ pid, command: command.replaceAll('\0', ' ').trim() })
  }
  return found
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function fromPs(text: string): { pid: number; command: string }[] {
  const listed = execFileSync('ps', ['-A', '-E', '-ww', '-o', 'pid=,command='], {
    encoding: 'utf8',
    maxBuffer: 2 ** 27,
  })
  return listed
    .split('\n')
    .filter((line) => line.includes(text))
    .map((line) => ({ pid: Number.parseInt(line, 10), command: line.trim().slice(0, 300) }))
}
