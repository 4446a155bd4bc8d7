import { closeSync, readdirSync, readFileSync } from 'node:fs'

/** `O_CLOEXEC` on Linux. */
const closedAtLaunch = 0o2000000

/**
 * Closes what this process got open from whoever started it and did not ask for, beside its three standard files: each
 * program that it launches would get it too, and a run could use it. To be called first of all. Does nothing without /proc.
 */
export function closeInheritedFiles(): void {
  let names: string[]
  try {
    names = readdirSync('/proc/self/fd')
  } catch {
    return
  }
  for (const file of names.map(Number).filter((each) => each > 2)) {
    try {
      const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${file}`, 'latin1'))?.[1]
      // Files that Node itself opened are closed at each launch.
      if (flags !== undefined && (Number.parseInt(flags, 8) & closedAtLaunch) === 0) closeSync(file)
    } catch {
      // The folder that was listed a moment ago.
    }
  }
}
