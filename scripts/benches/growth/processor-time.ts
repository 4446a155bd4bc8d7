import { readdirSync, readFileSync } from 'node:fs'

/** Milliseconds of processor time that this thread has had, in which a server of this process and its SQLite work. */
export function ownMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

const seen = new Map<string, number>()

/**
 * Milliseconds of processor time of all processes of PostgreSQL on this machine, those among them that have ended since they were
 * looked at; where there is no `/proc` 0.
 */
export function postgresMs(): number {
  for (const pid of pids()) {
    if (read(`/proc/${pid}/comm`)?.trim() !== 'postgres') continue
    const [ns] = read(`/proc/${pid}/schedstat`)?.split(' ') ?? []
    if (ns !== undefined) seen.set(pid, Number(ns))
  }
  return [...seen.values()].reduce((sum, ns) => sum + ns, 0) / 1e6
}

const pids = (): string[] =>
  process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : []

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
